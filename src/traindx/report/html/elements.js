"use strict";
// Words and elements. Text reaches the page as text nodes only, whatever it holds.

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

// A sentence in the page's language; tests ask for the twin of each template.
function t(template, values = {}) {
  const said = data.strings[template] ?? template;
  return said.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {}))
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Each level has a shape of its own: colour never speaks alone.
const SHAPES = {
  error: ["M5.2 1h5.6L15 5.2v5.6L10.8 15H5.2L1 10.8V5.2z", "M5.5 5.5l5 5m0-5l-5 5"],
  warning: ["M8 1.2L15.4 14.5H.6z", "M8 6v4m0 1.8v.6"],
  info: ["M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1z", "M8 7v5M8 4v.7"],
  clear: ["M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1z", "M4.8 8.3l2.2 2.3 4.2-4.8"],
  unknown: ["M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1z", "M4.8 8h6.4"],
};

function icon(level) {
  const [outline, sign] = SHAPES[level];
  return svg("svg", { viewBox: "0 0 16 16", class: `icon ${level}`, "aria-hidden": "true" },
    svg("path", { d: outline, fill: "currentColor" }),
    svg("path", { d: sign, fill: "none", stroke: "var(--card)", "stroke-width": "1.8" }));
}

const sections = []; // For the bar at the top.

function section(id, title, ...children) {
  sections.push([id, title]);
  page.append(h("section", { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title), ...children));
}

function pairs(className, entries) {
  const known = entries.filter(([, value]) => value !== "");
  return h("dl", { class: className }, known.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]));
}

function list(items) {
  return h("ul", { class: "plain" }, items.map((item) => h("li", {}, item)));
}

function button(text, onClick, attributes) {
  const made = h("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", onClick);
  return made;
}

// The first letter of a sentence, unless it is code.
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// A sentence whose `backticked` fragments are code.
function prose(text) {
  return text.split(/`([^`]+)`/).map((piece, i) => (i % 2 ? h("code", {}, piece) : piece));
}

function chooser(id, text, options, onChange) {
  const select = h("select", { id }, options.map(([value, name]) => h("option", { value }, name)));
  select.addEventListener("change", () => onChange(select.value));
  return [h("label", { for: id }, text), select];
}

function calm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
}

"use strict";
// Plots are drawn when they come into view, and again when their width changes.

const tasks = new Map(); // How each plot is drawn.
const widths = new WeakMap(); // The width each was last drawn at.
const near = new WeakSet(); // Those in view or close to it.
let printing = false;

function draw(plot) {
  const width = plot.clientWidth;
  if (!window.Plotly || !width || !plot.isConnected || !plot.checkVisibility()) return;
  if (width === widths.get(plot) || !(near.has(plot) || printing)) return;
  widths.set(plot, width);
  tasks.get(plot)();
}

const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => draw(target)));

const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) near.add(target);
    else near.delete(target);
    draw(target);
  }
}, { rootMargin: "400px" });

function drawAll() {
  for (const plot of tasks.keys()) {
    if (plot.isConnected) draw(plot);
    else tasks.delete(plot);
  }
}

function plotted(height, label, task, attributes) {
  const plot = h("div", { class: "plot", role: "img", "aria-label": label, style: `min-height:${height}px`, ...attributes });
  tasks.set(plot, () => task(plot));
  resized.observe(plot);
  seen.observe(plot);
  return plot;
}

const NARROW = 440;

// The end of a path tells layers apart; labels come escaped, so an entity must not be cut.
function shortened(label, most) {
  const text = label.replaceAll("&lt;", "<").replaceAll("&amp;", "&");
  const short = text.length > most ? `…${text.slice(1 - most)}` : text;
  return short.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

// Every so many ticks, so that at most `most` are left.
function fewer(axis, most) {
  if (!axis?.tickvals || axis.tickvals.length <= most) return axis;
  const every = Math.ceil(axis.tickvals.length / most);
  const kept = (texts) => texts.filter((_, i) => i % every === 0);
  return { ...axis, tickvals: kept(axis.tickvals), ticktext: kept(axis.ticktext) };
}

const LEGEND_ROW = 19;
const LEGEND_EDGE = 8;

// Lines of a panel's legend: plotly sets its entries in columns as wide as the widest.
function legendRows(names, width) {
  const entries = names.map((name) => 50 + 6.3 * name.length);
  if (entries.reduce((sum, entry) => sum + entry, 0) <= width) return 1;
  return Math.ceil(entries.length / Math.max(1, Math.floor(width / Math.max(...entries))));
}

// Room above each panel for its legend, and for its title above that, where they do not fit side
// by side. The figure grows; its panels stay as high as they were.
function withRoom(traces, layout, width) {
  const axes = Object.keys(layout).filter((name) => /^yaxis\d*$/.test(name) && layout[name].domain);
  const inner = layout.height - layout.margin.t - layout.margin.b;
  const wide = width - layout.margin.l - layout.margin.r;
  const panels = axes.map((axis) => {
    const own = `legend${axis.slice(5)}`;
    const names = traces.filter((trace) => trace.showlegend && (trace.legend ?? "legend") === own).map((trace) => trace.name);
    const [low, high] = layout[axis].domain;
    const title = layout.annotations?.find(({ y }) => Math.abs(y - high) < 1e-4);
    const rows = layout[own] && names.length ? legendRows(names, wide) : 0;
    const beside = 7 * (title?.text.length ?? 0) + names.reduce((sum, name) => sum + 50 + 6.3 * name.length, 0) <= wide;
    const above = title && rows && !beside ? rows : 0; // Lines of the legend below the title.
    const extra = LEGEND_ROW * Math.max(0, rows - 1) + (above ? LEGEND_ROW + LEGEND_EDGE : 0);
    return { axis, own, low, high, title, above, extra };
  }).sort((a, b) => b.high - a.high);
  const added = panels.reduce((sum, { extra }) => sum + extra, 0);
  if (!added) return layout;
  const grown = { ...layout, height: layout.height + added };
  const moved = new Map();
  let shift = 0;
  for (const { axis, own, low, high, title, above, extra } of panels) {
    shift += extra;
    const at = (y) => Math.min(1, Math.max(0, 1 - ((1 - y) * inner + shift) / (inner + added)));
    grown[axis] = { ...layout[axis], domain: [at(low), at(high)] };
    if (layout[own]) grown[own] = { ...layout[own], y: at(high) };
    if (title) moved.set(title, { ...title, y: at(high), yshift: above ? LEGEND_ROW * above + LEGEND_EDGE + 3 : 3 });
  }
  grown.annotations = layout.annotations?.map((one) => moved.get(one) ?? one);
  return grown;
}

function forPhone(traces, layout, width) {
  const narrowBar = { orientation: "h", x: 0.5, y: 1.01, yanchor: "bottom", thickness: 10, len: 1 };
  const slim = traces.map((trace) => ({
    ...trace,
    ...(trace.colorbar ? { colorbar: { ...trace.colorbar, ...narrowBar } } : {}),
    ...(trace.showlegend ? { name: shortened(trace.name, 22) } : {}),
  }));
  const yaxis = layout.yaxis?.ticktext
    ? { ...layout.yaxis, ticktext: layout.yaxis.ticktext.map((text) => shortened(text, 16)) }
    : layout.yaxis;
  const bars = traces.some((trace) => trace.colorbar);
  const margin = { ...layout.margin, l: Math.min(layout.margin.l, 48), r: 8, t: layout.margin.t + (bars ? 32 : 0) };
  const xaxis = fewer(layout.xaxis, 6);
  // Under a bar across the plot there is no room for the titles; the caption says what they say.
  if (bars) return [slim, { ...layout, yaxis: { ...yaxis, title: undefined }, margin, xaxis: { ...xaxis, title: undefined } }];
  return [slim, withRoom(slim, { ...layout, yaxis, margin, xaxis }, width)];
}

function show(plot, figure) {
  let { data: traces, layout } = resolved(figure);
  const { narrow, aspect } = layout.meta ?? {}; // Made for any width; as high as its width times this.
  if (aspect) layout = { ...layout, height: aspect * plot.clientWidth };
  if (plot.clientWidth < NARROW && !narrow) [traces, layout] = forPhone(traces, layout, plot.clientWidth);
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12 };
  const complete = { ...layout, template: data.template, font, width: plot.clientWidth };
  Plotly.newPlot(plot, traces, complete, { displayModeBar: false, responsive: false });
}

function figure(entry, attributes) {
  const { title, caption } = entry;
  const about = title || caption ? h("figcaption", {}, title ? h("b", {}, title) : null,
    title && caption ? " · " : "", caption ?? "") : null;
  const label = entry.label || [title, caption].filter(Boolean).join(". ") || t("Plot");
  const aspect = entry.figure.layout?.meta?.aspect;
  const own = aspect ? { style: `aspect-ratio: ${1 / aspect}` } : {};
  return h("figure", {}, about,
    plotted(entry.height ?? entry.figure.layout.height, label, (plot) => show(plot, entry.figure), { ...own, ...attributes }));
}

// A figure at one of several steps, chosen with a slider. Its first traces may stay as they are.
let framedCount = 0;

function framed(entry) {
  const id = `step-${++framedCount}`;
  const last = entry.frames.length - 1;
  const base = whole(entry.figure);
  const slider = h("input", { type: "range", id, min: 0, max: last, value: last, step: 1 });
  const shown = h("output", { for: id });
  const at = () => {
    const frame = entry.frames[slider.value];
    const fixed = entry.fixed ?? 0;
    const traces = base.data.map((trace, i) => {
      if (i < fixed) return trace;
      const own = frame.data[i - fixed];
      return own ? { ...trace, ...own } : { ...trace, y: [] };
    });
    return { ...base, data: traces };
  };
  const say = () => {
    const { step } = entry.frames[slider.value];
    shown.textContent = t("step {step}", { step });
    slider.setAttribute("aria-valuetext", shown.textContent);
  };
  const plot = plotted(base.layout.height, entry.title || entry.quantity || t("Plot"),
    (element) => show(element, at()));
  slider.addEventListener("input", () => {
    say();
    if (window.Plotly) show(plot, at());
  });
  say();
  const controls = last > 0 ? h("div", { class: "slider" }, h("label", { for: id }, t("Measured step")), slider, shown) : null;
  return h("figure", {}, entry.title ? h("figcaption", {}, h("b", {}, entry.title)) : null, controls, plot,
    h("figcaption", { class: "below" }, entry.caption));
}

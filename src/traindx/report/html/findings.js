"use strict";
// The verdict, the findings, and what the verdict does not cover.

function header() {
  document.title = `${data.title} · traindx`;
  const { words, extent, level, first } = data.verdict;
  return h("header", { class: "top" },
    h("p", { class: "script path" }, data.title),
    h("h1", { class: "verdict" }, icon(level), h("span", {}, capital(words))),
    first ? h("p", { class: "first" }, prose(first)) : null,
    h("p", { class: "lead" }, extent ? t("in {extent}", { extent }) : "", " ", coverage()),
    h("dl", { class: "facts" }, data.facts.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))));
}

// How much was not checked, right below the verdict.
function coverage() {
  const { rules, places, probes, silenced, contexts } = data.unchecked;
  const num = (texts) => texts.length;
  const codes = rules.reduce((sum, [names]) => sum + names.split(/[,、]/).length, 0);
  const parts = [
    codes ? t("rules not evaluated: {n}", { n: codes }) : "",
    num(probes) ? t("probes that did not look: {n}", { n: num(probes) }) : "",
    num(places) ? t("kinds of places not measured: {n}", { n: num(places) }) : "",
    num(silenced) ? t("findings silenced: {n}", { n: num(silenced) }) : "",
    num(contexts) ? t("contexts: {n}", { n: num(contexts) }) : "",
  ].filter(Boolean);
  return parts.length ? h("a", { href: "#unchecked", class: "coverage" }, icon("unknown"), parts.join(" · ")) : null;
}

// -- One finding ----------------------------------------------------------------------------------

function copyable(text) {
  const code = h("pre", { tabindex: "0" }, text);
  const status = h("span", { class: "visually-hidden", role: "status" });
  const copy = button(t("Copy"), async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      document.execCommand("copy"); // Where a page opened from disk may not use the clipboard.
    }
    copy.textContent = status.textContent = t("Copied");
    setTimeout(() => (copy.textContent = t("Copy")), 1500);
  });
  return h("div", { class: "fix" }, code, copy, status);
}

function parts(finding) {
  const fix = finding.fix_is_code ? copyable(finding.fix) : h("div", { class: "fix sentence" },
    h("p", {}, prose(finding.fix)));
  return pairs("parts", [
    [t("Why"), finding.cause && prose(finding.cause)],
    [t("Fix"), finding.fix && fix],
    [t("Excluded"), finding.excluded.length ? h("ul", {}, finding.excluded.map((text) => h("li", {}, text))) : ""],
    [t("Seen"), finding.seen],
  ]);
}

// Where in the network: one cell a layer, those concerned filled.
function strip(finding) {
  const count = data.layers.length;
  if (count < 2 || !finding.layers.length) return null;
  const own = new Set(finding.layers);
  const runs = [];
  for (const i of finding.layers) {
    const last = runs.at(-1);
    if (last && last[1] === i - 1) last[1] = i;
    else runs.push([i, i]);
  }
  const gap = count <= 60 ? 0.16 : 0;
  const cells = gap
    ? data.layers.map((_, i) => svg("rect", { x: i + gap / 2, y: own.has(i) ? 0 : 3, width: 1 - gap, height: own.has(i) ? 10 : 4, class: own.has(i) ? "on" : "off" }))
    : [svg("rect", { x: 0, y: 3, width: count, height: 4, class: "off" }),
      ...runs.map(([a, b]) => svg("rect", { x: a, y: 0, width: Math.max(b - a + 1, count / 150), height: 10, class: "on" }))];
  return svg("svg", { class: "strip", viewBox: `0 0 ${count} 10`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...cells);
}

const MOST_NAMED = 6;

function concerned(finding) {
  if (!finding.layers.length) return null;
  const named = finding.layers.slice(0, MOST_NAMED).map((i) =>
    button(data.layers[i].fqn, () => openLayer(i, true), { class: "chip path" }));
  const rest = finding.layers.length - named.length;
  const all = button(rest > 0 ? t("all {n} in the list", { n: finding.layers.length }) : t("show in the list"), () => {
    select(finding);
    document.getElementById("layers").scrollIntoView({ behavior: calm() });
  }, { class: "quiet-button" });
  return h("div", { class: "concerned" }, strip(finding),
    h("div", { class: "chips" }, h("span", { class: "quiet" }, t("Layers")), named, all));
}

function evidence(finding) {
  return [concerned(finding), finding.figures.map((entry) => figure(entry))];
}

function body(finding) {
  return [
    h("p", { class: "message" }, prose(capital(finding.message))),
    finding.measures.length ? h("ul", { class: "measures" }, finding.measures.map((text) => h("li", {}, text))) : null,
    parts(finding),
  ];
}

// A finding that another explains, or one that is over: built when it is opened.
function folded(finding, lead) {
  const inner = h("div", { class: "inner" });
  const details = h("details", { id: `finding-${finding.id}` },
    h("summary", {}, lead, icon(finding.severity), h("span", { class: "visually-hidden" }, finding.severity_word), " ",
      h("b", {}, `${finding.code} ${finding.name}`), " ", h("span", { class: "quiet" }, finding.where)), inner);
  const build = () => {
    if (!inner.childNodes.length) inner.append(...[body(finding), evidence(finding)].flat(Infinity).filter(Boolean));
  };
  details.addEventListener("unfold", build); // Before printing, when there is no time for an event.
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    build();
    if (!printing) select(finding);
  });
  return details;
}

function card(finding, open) {
  const id = `evidence-${finding.id}`;
  const shown = h("div", { class: "evidence", id });
  const toggle = h("button", { type: "button", class: "heading", "aria-controls": id },
    h("span", { class: `badge ${finding.severity}` }, icon(finding.severity), finding.severity_word),
    h("span", { class: "name" }, `${finding.code} ${finding.name}`),
    h("span", { class: "more", "aria-hidden": "true" }, ""));
  const set = (value) => {
    toggle.setAttribute("aria-expanded", value);
    toggle.querySelector(".more").textContent = value ? t("hide evidence") : t("show evidence");
    shown.hidden = !value;
    if (value && !shown.childNodes.length) shown.append(...evidence(finding).flat(Infinity).filter(Boolean));
  };
  toggle.addEventListener("click", () => {
    set(shown.hidden);
    select(shown.hidden ? null : finding);
  });
  set(open);
  const made = h("article", { class: `finding ${finding.severity}`, id: `finding-${finding.id}` },
    h("h3", {}, toggle), h("p", { class: "where" }, finding.where), body(finding), shown,
    symptoms(finding.symptoms));
  made.addEventListener("unfold", () => set(true));
  return made;
}

function symptoms(all) {
  if (!all.length) return null;
  return h("div", { class: "symptoms" }, h("p", { class: "quiet" }, t("Explains")), all.map((one) => folded(one, "")));
}

// -- All findings ---------------------------------------------------------------------------------

const MOST_ON_TOP = 3;

function findings() {
  if (data.findings.length) {
    const rest = data.findings.slice(MOST_ON_TOP);
    const more = rest.length
      ? h("details", { class: "rest" }, h("summary", {}, t("and {n} more", { n: rest.length })), rest.map((f) => card(f, false)))
      : null;
    section("findings", t("Findings"), data.findings.slice(0, MOST_ON_TOP).map((f, i) => card(f, i === 0)), more);
  }
  if (data.cleared.length)
    section("cleared", t("Cleared"), h("p", { class: "quiet" }, t("Seen earlier, no longer at the end.")),
      h("div", { class: "cleared" }, data.cleared.map((finding) => folded(finding, ""))));
}

function unchecked() {
  const { rules, places, probes, silenced, contexts } = data.unchecked;
  const groups = [
    [t("Probes that did not look"), probes],
    [t("Rules that could not judge"), rules.map(([codes, reason]) => [h("b", {}, codes), " ", prose(reason)])],
    [t("Places not measured"), places],
    [t("Silenced findings"), silenced],
    [t("Judged under these circumstances"), contexts],
    [t("Notes"), data.notes],
  ].filter(([, items]) => items.length);
  if (!groups.length) return;
  section("unchecked", t("What was not checked"),
    h("div", { class: "groups" }, groups.map(([title, items]) =>
      h("div", { class: "group" }, h("h3", {}, title, " ", h("span", { class: "count" }, String(items.length))), list(items)))));
}

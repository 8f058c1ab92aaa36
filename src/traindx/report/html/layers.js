"use strict";
// The layers in network order, and everything that was measured of one.

const HEALTH = () => ({
  error: t("error"), warning: t("warning"), info: t("info"),
  clear: t("no finding"), unmeasured: t("not measured"),
});

// -- Sparklines -----------------------------------------------------------------------------------

const SPARK = 48;

// The least and the greatest of each stretch, on a logarithmic scale where all is positive.
function sparkline(at) {
  const values = [...row(at)];
  const finite = values.filter(isShown);
  if (finite.length < 2) return svg("svg", { class: "spark", "aria-hidden": "true" });
  const log = finite.every((value) => value > 0);
  const scale = log ? Math.log10 : (value) => value;
  const heights = finite.map(scale);
  const low = Math.min(...heights);
  const high = Math.max(...heights);
  const size = Math.max(1, Math.ceil((2 * values.length) / SPARK));
  const points = [];
  for (let i = 0; i < values.length; i += size) {
    const stretch = values.slice(i, i + size).filter(isShown).map(scale);
    if (!stretch.length) continue;
    points.push([i, Math.min(...stretch)]);
    if (size > 1) points.push([i + size / 2, Math.max(...stretch)]);
  }
  const flat = high - low < 1e-12;
  const x = (i) => (1 + (62 * i) / Math.max(1, values.length - 1)).toFixed(1);
  const y = (v) => (flat ? 9 : 16 - (14 * (v - low)) / (high - low)).toFixed(1);
  const path = points.map(([i, v], n) => `${n ? "L" : "M"}${x(i)} ${y(v)}`).join("");
  return svg("svg", { class: "spark", viewBox: "0 0 64 18", "aria-hidden": "true" }, svg("path", { d: path }));
}

function drawSpark(cell) {
  sparks.unobserve(cell);
  if (!cell.querySelector("svg")) cell.prepend(sparkline(Number(cell.dataset.at)));
}

const sparks = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) if (isIntersecting) drawSpark(target);
}, { rootMargin: "200px" });

function measure(name, found) {
  const cell = h("td", { class: "number measure", "data-label": name });
  if (found === null) {
    cell.append(h("span", { class: "value none" }, "–"));
    return cell;
  }
  const [text, at, isFinite] = found;
  cell.dataset.at = at;
  sparks.observe(cell);
  cell.append(h("span", { class: `value ${isFinite ? "" : "broken"}` }, text));
  return cell;
}

// -- The list -------------------------------------------------------------------------------------

const listed = []; // The row of each layer.
let selected = null; // The finding whose layers are highlighted.
let onlySelected = false;

function layerRow(layer, i) {
  const health = layer.health === "unmeasured" ? "unknown" : layer.health;
  const name = button(layer.fqn, () => openLayer(i, false), { class: "path link", "aria-controls": "layer" });
  const made = h("tr", { "data-i": i },
    h("td", { class: "number place" }, layer.position === null ? "–" : String(layer.position)),
    h("td", { class: `health ${layer.health}` },
      h("span", { class: "with-icon" }, icon(health), " ",
        h("span", {}, HEALTH()[layer.health], layer.codes.map((code) => [" ", h("span", { class: "code" }, code)])))),
    h("td", { class: "layer" }, name),
    h("td", { class: "kind" }, layer.kind),
    h("td", { class: "number params" }, layer.params ? layer.params.toLocaleString("en") : "–"),
    measure(t("output RMS"), layer.output),
    measure(t("gradient RMS"), layer.grad),
    data.preflight ? null : measure(t("update ratio"), layer.ratio));
  made.addEventListener("click", (event) => {
    if (!event.target.closest("button") && !getSelection().toString()) openLayer(i, false);
  });
  return made;
}

function filtered(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const own = selected && onlySelected ? new Set(selected.layers) : null;
  let count = 0;
  data.layers.forEach((layer, i) => {
    const text = [layer.fqn, layer.kind, HEALTH()[layer.health], ...layer.codes].join(" ").toLowerCase();
    const shown = words.every((word) => text.includes(word)) && (!own || own.has(i));
    listed[i].hidden = !shown;
    count += shown;
  });
  document.getElementById("shown").textContent = t("{n} of {all} layers", { n: count, all: data.layers.length });
}

// Highlights the layers of a finding in the list; null takes it back.
function select(finding) {
  selected = finding?.layers.length ? finding : null;
  onlySelected = false;
  const own = new Set(selected?.layers ?? []);
  listed.forEach((element, i) => {
    element.classList.toggle("concerned-row", own.has(i));
    if (own.has(i)) element.setAttribute("aria-description", t("concerned by {code}", { code: selected.code }));
    else element.removeAttribute("aria-description");
  });
  const about = document.getElementById("selected");
  if (!about) return;
  about.hidden = !selected;
  about.replaceChildren();
  if (!selected) return refilter();
  const only = button(t("show only these"), () => {
    onlySelected = !onlySelected;
    only.setAttribute("aria-pressed", onlySelected);
    refilter();
  }, { class: "quiet-button", "aria-pressed": "false" });
  about.append(
    h("span", { class: "mark-sample", "aria-hidden": "true" }),
    t("Highlighted: the layers that {code} concerns ({n})", { n: own.size, code: `${selected.code} ${selected.name}` }), " ",
    only, button(t("clear"), () => select(null), { class: "quiet-button" }));
  refilter();
  const box = document.querySelector("#layers .scroll");
  const first = listed[selected.layers[0]];
  if (box && first) box.scrollTop = Math.max(0, first.offsetTop - 80);
}

function refilter() {
  filtered(document.getElementById("filter")?.value ?? "");
}

function layers() {
  if (!data.layers.length) return;
  const filter = h("input", { type: "search", id: "filter", placeholder: t("name, class, finding"), autocomplete: "off", spellcheck: "false" });
  filter.addEventListener("input", refilter);
  const columns = [["#", "number place"], [t("health"), "health"], [t("layer"), "layer"], [t("class"), "kind"],
    [t("parameters"), "number params"], [t("output RMS"), "number measure"], [t("gradient RMS"), "number measure"],
    ...(data.preflight ? [] : [[t("update ratio"), "number measure"]])];
  const head = h("tr", {}, columns.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)));
  const groups = data.models.map((model, m) => {
    const own = data.layers.map((layer, i) => [layer, i]).filter(([layer]) => layer.model === m);
    const name = data.models.length > 1
      ? h("tr", { class: "model" }, h("th", { colspan: columns.length, scope: "rowgroup" }, `${model.name} · ${model.kind}`))
      : null;
    return h("tbody", {}, name, own.map(([layer, i]) => (listed[i] = layerRow(layer, i))));
  });
  const compiled = data.models.filter((model) => model.compiled)
    .map((model) => t("{model} is compiled: its activations cannot be measured.", { model: model.name }));
  section("layers", t("Layers"),
    h("p", { class: "quiet about" }, data.preflight
      ? t("In network order, before training. The gradient is that at the layer's output, of a random direction at the network's.")
      : t("In network order. The last value measured, with its course on a logarithmic scale; gradient and update are those of the layer's largest parameter."), " ", compiled.join(" ")),
    h("div", { class: "chooser" }, h("label", { for: "filter" }, t("Filter")), filter, h("output", { id: "shown", class: "quiet", for: "filter" })),
    h("p", { id: "selected", class: "selected", role: "status", hidden: "" }),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("Layers") },
      h("table", { class: "layers" }, h("thead", {}, head), groups)),
    h("div", { id: "layer", class: "detail", tabindex: "-1", hidden: "" }));
  filtered("");
}

// -- One layer ------------------------------------------------------------------------------------

let opened = null;

function openLayer(i, follow) {
  const layer = data.layers[i];
  const detail = document.getElementById("layer");
  if (opened !== null) listed[opened].classList.remove("opened");
  opened = i;
  listed[i].classList.add("opened");
  const step = (to, text) => button(text, () => openLayer(to, false), { class: "quiet-button", ...(data.layers[to] ? {} : { disabled: "" }) });
  const close = button(t("close"), () => closeLayer(), { class: "quiet-button" });
  detail.replaceChildren(
    h("div", { class: "detail-head" },
      h("h3", {}, icon(layer.health === "unmeasured" ? "unknown" : layer.health), " ", h("span", { class: "path" }, layer.fqn)),
      h("span", { class: "quiet" }, [layer.kind, layer.params ? t("{n} parameters", { n: layer.params.toLocaleString("en") }) : "",
        [HEALTH()[layer.health], ...layer.codes].join(" ")].filter(Boolean).join(" · ")),
      h("span", { class: "steps" }, step(i - 1, t("previous")), step(i + 1, t("next")), close)),
    h("div", { class: "columns" }, layerFigures(layer)));
  detail.hidden = false;
  detail.focus({ preventScroll: true });
  detail.scrollIntoView({ behavior: calm(), block: "start" });
  if (follow) listed[i].closest(".scroll").scrollTop = Math.max(0, listed[i].offsetTop - 80);
}

function closeLayer() {
  const detail = document.getElementById("layer");
  detail.hidden = true;
  const name = listed[opened].querySelector("button");
  listed[opened].classList.remove("opened");
  opened = null;
  name.focus();
}

function layerFigures(layer) {
  const figures = [
    layer.main ? figure({ title: t("Course"), caption: t("on the steps of the loss"), ...layer.main }) : null,
    layer.norm ? framed(layer.norm) : null,
    layer.exponents.length ? h("p", { class: "quiet small" },
      t("Share of the non-zero elements of a sample in each power of two. Dashed: the limits of float16; below 2^-24 it is zero. bfloat16 and float32 reach down to 2^-126, off this scale.")) : null,
    ...layer.exponents.map((entry) => figure(entry)),
    layer.probed.length ? pairs("details", layer.probed) : null,
    layer.rest ? figure({ title: t("Ranges and fractions"), caption: "", ...layer.rest }) : null,
  ].filter(Boolean);
  return figures.length ? figures : [h("p", { class: "quiet" }, t("Nothing was measured of this layer."))];
}

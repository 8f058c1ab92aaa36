"use strict";
// Lays out the data below it. Text reaches the page as text nodes only, whatever it holds.

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

// -- Elements -------------------------------------------------------------------------------------

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== ""));
  return element;
}

const SHAPES = {
  error: ["M5.2 1h5.6L15 5.2v5.6L10.8 15H5.2L1 10.8V5.2z", "M5.5 5.5l5 5m0-5l-5 5"],
  warning: ["M8 1.2L15.4 14.5H.6z", "M8 6v4m0 1.8v.6"],
  info: ["M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1z", "M8 7v5M8 4v.7"],
  clear: ["M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1z", "M4.8 8.3l2.2 2.3 4.2-4.8"],
  unknown: ["M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1z", "M4.8 8h6.4"],
};

function icon(level) {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  const [outline, sign] = SHAPES[level].map((d) => {
    const path = document.createElementNS(namespace, "path");
    path.setAttribute("d", d);
    return path;
  });
  outline.setAttribute("fill", "currentColor");
  for (const [name, value] of [["fill", "none"], ["stroke", "var(--card)"], ["stroke-width", "1.8"]])
    sign.setAttribute(name, value);
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon ${level}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(outline, sign);
  return svg;
}

function section(title, ...children) {
  page.append(h("section", {}, h("h2", {}, title), ...children));
}

function pairs(className, entries) {
  const known = entries.filter(([, value]) => value !== "");
  return h("dl", { class: className }, known.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]));
}

function list(texts) {
  return h("ul", { class: "plain" }, texts.map((text) => h("li", {}, text)));
}

// -- Figures --------------------------------------------------------------------------------------

const tasks = new Map(); // How each plot is drawn at its present width.
const widths = new WeakMap(); // The width each was last drawn at.

// A plot in closed details waits; the observer calls again when they are opened.
function draw(plot) {
  const width = plot.clientWidth;
  if (!plot.checkVisibility() || width === widths.get(plot) || !window.Plotly) return;
  widths.set(plot, width);
  tasks.get(plot)();
}

const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => draw(target)));

function plotted(task, attributes) {
  const plot = h("div", { class: "plot", ...attributes });
  tasks.set(plot, () => task(plot));
  resized.observe(plot);
  return plot;
}

function show(plot, traces, layout) {
  const font = { family: getComputedStyle(document.body).fontFamily };
  // Not `react`: it leaves marks of the old layout when a colour bar changes sides.
  Plotly.newPlot(plot, traces, { ...layout, font, width: plot.clientWidth }, { displayModeBar: false });
}

function figure(entry) {
  const caption = entry.caption ? ` · ${entry.caption}` : "";
  return h("figure", {},
    h("figcaption", {}, h("b", {}, entry.title), caption),
    plotted((plot) => show(plot, entry.figure.data, entry.figure.layout)));
}

// -- Header ---------------------------------------------------------------------------------------

function header() {
  document.title = `${data.title} · traindx`;
  const { words, extent, level } = data.verdict;
  const sentence = words.charAt(0).toUpperCase() + words.slice(1);
  return h("header", {},
    h("p", { class: "script" }, h("b", {}, "traindx"), " · ", h("span", { class: "path" }, data.title)),
    h("h1", { class: "verdict" }, icon(level), h("span", {}, sentence)),
    h("p", { class: "quiet" }, extent && `in ${extent}`),
    h("dl", { class: "facts" },
      data.facts.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))));
}

// -- Findings -------------------------------------------------------------------------------------

function copyable(text) {
  const code = h("pre", {}, text);
  const button = h("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      document.execCommand("copy"); // Where a page opened from disk may not use the clipboard.
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return h("div", { class: "fix" }, code, button);
}

// A sentence whose `backticked` fragments are code.
function prose(text) {
  const pieces = text.split(/`([^`]+)`/);
  return pieces.map((piece, i) => (i % 2 ? h("code", {}, piece) : piece));
}

function fix(finding) {
  return finding.fix_is_code ? copyable(finding.fix) : prose(finding.fix);
}

function parts(finding) {
  const excluded = finding.excluded.map((text) => h("li", {}, text));
  return pairs("parts", [
    ["Why", finding.cause && prose(finding.cause)],
    ["Fix", finding.fix && fix(finding)],
    ["Excluded", excluded.length ? h("ul", {}, excluded) : ""],
    ["Seen", finding.seen],
  ]);
}

function body(finding) {
  return [
    h("p", { class: "message" }, prose(finding.message)),
    finding.measures.length
      ? h("ul", { class: "measures" }, finding.measures.map((text) => h("li", {}, text)))
      : null,
    ...finding.figures.map(figure),
    parts(finding),
  ];
}

function folded(finding, lead) {
  const name = `${finding.code} ${finding.name}`;
  return h("details", {},
    h("summary", {}, lead, icon(finding.severity), " ", h("b", {}, name), ` at ${finding.where}`),
    h("div", { class: "inner" }, body(finding)));
}

function card(finding) {
  return h("article", { class: "finding", id: `finding-${finding.id}` },
    h("header", {},
      h("span", { class: `badge ${finding.severity}` }, icon(finding.severity), finding.severity),
      h("h3", {}, `${finding.code} ${finding.name}`)),
    h("p", { class: "where" }, finding.where),
    body(finding),
    finding.symptoms.map((symptom) => folded(symptom, "Explains ")));
}

function findings() {
  if (data.findings.length) section("Findings", data.findings.map(card));
  if (data.cleared.length) {
    const cleared = data.cleared.map((finding) => folded(finding, ""));
    section("Cleared", h("p", { class: "quiet" }, "Seen earlier, no longer at the end."),
      h("div", { class: "cleared" }, cleared));
  }
}

function unchecked() {
  const rules = data.unevaluated.map(([codes, reason]) => `${codes}: ${reason}`);
  const groups = [["Rules that could not judge", rules], ["Places not measured", data.unmeasured]]
    .filter(([, texts]) => texts.length)
    .map(([title, texts]) => [h("h3", {}, title), list(texts)]);
  if (groups.length) section("What was not checked", groups);
  if (data.notes.length) section("Notes", list(data.notes));
}

// -- Layers over steps ----------------------------------------------------------------------------

const ZERO = "#b9bdc0";
const NONFINITE = "#e8590c";

function cells(grid, of) {
  return grid.values.map((row) => row.map((value) => (value === null ? null : of(Number(value)))));
}

function hover(grid) {
  return grid.values.map((row, i) =>
    row.map((value, j) => `${grid.rows[i]}<br>step ${grid.steps[j]}<br>${grid.quantity} ${value}`));
}

// Every decade, or every second or third where there are many, written as powers of ten.
function decades(z) {
  const finite = z.flat().filter((value) => value !== null);
  const low = finite.reduce((a, b) => Math.min(a, b), Infinity);
  const high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
  const every = Math.max(1, Math.ceil((high - low) / 6));
  const ticks = [];
  for (let tick = Math.ceil(low); tick <= high; tick += every) ticks.push(tick);
  if (ticks.length > 1) return [ticks, ticks.map((tick) => `10<sup>${tick}</sup>`)];
  return [[low, high], [low, high].map((tick) => (10 ** tick).toPrecision(2))];
}

function heat(grid, z, extra) {
  return { type: "heatmap", z, text: hover(grid), hoverinfo: "text", hoverongaps: false, ...extra };
}

function marked(grid, is, color) {
  const z = cells(grid, (value) => (is(value) ? 1 : null));
  if (!z.some((row) => row.includes(1))) return null;
  return heat(grid, z, { colorscale: [[0, color], [1, color]], showscale: false });
}

const isZero = (value) => value === 0;
const isNonfinite = (value) => !Number.isFinite(value);

function traces(grid, narrow) {
  const z = cells(grid, (value) => (value > 0 && Number.isFinite(value) ? Math.log10(value) : null));
  const [tickvals, ticktext] = decades(z);
  const colorbar = narrow
    ? { orientation: "h", y: 1.01, yanchor: "bottom", thickness: 10 }
    : { thickness: 12, outlinewidth: 0, len: 1 };
  const main = heat(grid, z, {
    colorscale: "Viridis",
    colorbar: { ...colorbar, outlinewidth: 0, tickvals, ticktext },
  });
  return [main, marked(grid, isZero, ZERO), marked(grid, isNonfinite, NONFINITE)].filter(Boolean);
}

// The end of a path tells layers apart; labels come escaped, so an entity must not be cut.
function shortened(label, most) {
  const text = label.replaceAll("&lt;", "<").replaceAll("&amp;", "&");
  const short = text.length > most ? `…${text.slice(1 - most)}` : text;
  return short.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

function ticks(labels, most) {
  const every = Math.ceil(labels.length / most);
  const tickvals = labels.map((_, i) => i).filter((i) => i % every === 0);
  return { tickmode: "array", tickvals, ticktext: tickvals.map((i) => labels[i]) };
}

function drawGrid(plot, grid) {
  const narrow = plot.clientWidth < 560;
  const rows = grid.rows.map((label) => shortened(label, narrow ? 14 : 32));
  const height = Math.min(860, Math.max(260, 90 + 20 * rows.length));
  const layout = {
    height,
    margin: { l: 10, r: 10, t: 10, b: 44 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    dragmode: false,
    xaxis: { title: { text: "measured step" }, showgrid: false, ...ticks(grid.steps.map(String), narrow ? 6 : 14) },
    yaxis: { autorange: "reversed", automargin: true, showgrid: false, ...ticks(rows, (height - 90) / 18) },
  };
  show(plot, traces(grid, narrow), layout);
}

function key(grid, is, color, text) {
  const present = grid.values.some((row) => row.some((value) => value !== null && is(Number(value))));
  return present ? [h("span", { class: "key", style: `background:${color}` }), `${text}. `] : [];
}

function heatmap() {
  if (!data.grids.length) return;
  const options = data.grids.map((grid, i) => h("option", { value: i }, grid.quantity));
  const select = h("select", { id: "quantity" }, options);
  const about = h("p", { class: "quiet small" });
  const showChosen = (plot) => {
    const grid = data.grids[select.value];
    about.replaceChildren(
      `${grid.meaning} Logarithmic colours; layers in network order. `,
      ...key(grid, isZero, ZERO, "Exactly 0"),
      ...key(grid, isNonfinite, NONFINITE, "NaN or infinite"),
      grid.left_out);
    drawGrid(plot, grid);
  };
  const plot = plotted(showChosen, { id: "heatmap" });
  select.addEventListener("change", () => showChosen(plot));
  section("Layers over steps",
    h("div", { class: "chooser" }, h("label", { for: "quantity" }, "Quantity"), select), about, plot);
}

// -- Tables ---------------------------------------------------------------------------------------

function row(layer) {
  const cell = (value) => h("td", { class: "number" }, value === null ? "–" : String(value));
  const mark = layer.mark ? [icon(layer.mark), ` ${layer.mark}`] : "–";
  return h("tr", {},
    cell(layer.position),
    h("td", { class: "path" }, layer.fqn),
    h("td", { class: `mark ${layer.mark ?? ""}` }, mark),
    h("td", {}, layer.kind),
    cell(layer.params.toLocaleString("en")),
    cell(layer.grad),
    cell(layer.ratio));
}

const COLUMNS = [
  ["#", "Place in the forward pass", "number"],
  ["layer", "Path in the model", ""],
  ["finding", "The worst at this layer", ""],
  ["class", "", ""],
  ["parameters", "Elements of its own parameters", "number"],
  ["grad.rms", "Of its largest parameter, last measured", "number"],
  ["update.ratio", "Of its largest parameter, last measured", "number"],
];

function layerTable(model) {
  const head = COLUMNS.map(([name, title, kind]) => h("th", { class: kind, title, scope: "col" }, name));
  return h("div", { class: "scroll", tabindex: "0" },
    h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, model.layers.map(row))));
}

function layers() {
  for (const model of data.models) {
    const compiled = model.compiled ? " Compiled: its activations cannot be measured." : "";
    section(`Layers of ${model.name}`,
      h("p", { class: "quiet small" },
        `${model.kind}, ${model.layers.length} layers in network order; grad.rms and update.ratio `,
        `are the last measured of a layer's largest parameter.${compiled}`),
      layerTable(model));
  }
}

// -- The page -------------------------------------------------------------------------------------

page.replaceChildren(header());
findings();
if (data.loss) section("Loss", figure(data.loss));
heatmap();
layers();
unchecked();
section("Run", pairs("details", data.details));

const drawAll = () => [...tasks.keys()].forEach(draw);
document.addEventListener("DOMContentLoaded", drawAll); // By then plotly, which comes last, is there.
addEventListener("beforeprint", () => {
  page.classList.add("paper"); // The width of a sheet, so that plots are drawn to fit it.
  drawAll();
});
addEventListener("afterprint", () => page.classList.remove("paper"));

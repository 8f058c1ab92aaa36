"use strict";
// The figures of the run as a whole.

function timeline() {
  if (data.timeline) section("timeline", t("Course of training"), figure(data.timeline, { id: "loss" }));
}

// What probes have measured of the whole, each with its meaning.
function probed() {
  if (!data.probed.length) return;
  const several = new Set(data.probed.map(([, where]) => where)).size > 1;
  section("probed", t("Measured before training"), h("dl", { class: "probed" }, data.probed.map(([name, where, value, meaning]) =>
    h("div", {}, h("dt", {}, h("code", {}, name), several ? h("span", { class: "quiet path" }, ` ${where}`) : null),
      h("dd", { class: "probed-value" }, value), h("dd", { class: "quiet" }, meaning)))));
}

// -- Layers over steps ----------------------------------------------------------------------------

const KEYS = () => [["zero", t("exactly 0")], ["broken", t("NaN or infinite")]];

function keys(entry) {
  const shows = new Set(entry.figure.data.map((trace) => trace.z.shows));
  return KEYS().filter(([kind]) => shows.has(kind)).map(([kind, text]) =>
    h("span", { class: "key-item" }, h("span", { class: `key ${kind}`, "aria-hidden": "true" }), text));
}

function heatmap() {
  if (!data.heatmaps.length) return;
  const about = h("p", { class: "quiet about" });
  const foot = h("p", { class: "quiet small keys" });
  let chosen = 0;
  const showChosen = (plot) => {
    const entry = data.heatmaps[chosen];
    about.replaceChildren(entry.meaning);
    foot.replaceChildren(...keys(entry), entry.caption);
    plot.setAttribute("aria-label", `${entry.quantity}. ${entry.meaning}`);
    plot.style.minHeight = `${entry.figure.layout.height}px`;
    if (window.Plotly && (near.has(plot) || printing)) show(plot, entry.figure);
  };
  const plot = plotted(data.heatmaps[0].figure.layout.height, "", showChosen, { id: "heatmap" });
  const select = chooser("quantity", t("Quantity"), data.heatmaps.map((entry, i) => [i, entry.quantity]), (value) => {
    chosen = Number(value);
    showChosen(plot);
  });
  section("heatmaps", t("Layers over steps"), h("div", { class: "chooser" }, select), about, plot, foot);
  showChosen(plot);
}

// -- Along the depth ------------------------------------------------------------------------------

function depths() {
  if (!data.depths.length) return;
  const several = data.models.length > 1;
  const place = h("div", { id: "depth" });
  const showChosen = (value) => place.replaceChildren(framed({ ...data.depths[value], title: "" }));
  const names = data.depths.map((entry, i) => [i, several ? `${entry.quantity} · ${entry.model}` : entry.quantity]);
  section("depths", t("Along the depth"),
    h("p", { class: "quiet about" }, t("Each layer's value at one measured step, beside the first measured step (dotted).")),
    h("div", { class: "chooser" }, chooser("depth-quantity", t("Quantity"), names, showChosen)), place);
  showChosen(0);
}

function updates() {
  if (data.updates) section("updates", t("Update ratios"), figure(data.updates));
}

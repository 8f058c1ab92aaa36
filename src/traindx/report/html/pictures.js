"use strict";
// What is looked at rather than read: the weights of the first layer, and how values are distributed.

function paragraphs(texts) {
  return texts.filter(Boolean).map((text) => h("p", {}, text));
}

function firstLayers() {
  if (!data.first_layers.length) return;
  section("first-layer", t("First-layer weights"), data.first_layers.map((entry) =>
    h("div", { class: "beside" }, figure(entry), h("div", { class: "guide" }, paragraphs(entry.guide)))));
}

function pictures() {
  distributions();
  firstLayers();
}

// The kinds of one model: a figure along the depth of the one chosen, and below it histograms of all.
function distribution(model, m) {
  const place = h("div", {});
  const showChosen = (value) => {
    const { quantiles, title, reading } = model.kinds[value];
    place.replaceChildren(figure({ title: "", caption: "", label: `${title}. ${reading}`, figure: quantiles }),
      h("p", { class: "quiet small about" }, reading));
  };
  const options = model.kinds.map(({ title }, i) => [i, title]);
  const name = data.distributions.length > 1 ? h("h3", { class: "path" }, model.model) : null;
  showChosen(0);
  return [name,
    h("div", { class: "chooser" }, chooser(`distribution-${m}`, t("Along the depth"), options, showChosen)), place,
    h("div", { class: "trio" }, model.kinds.map(({ title, histograms }) => figure({ title: capital(title), caption: "", figure: histograms })))];
}

function distributions() {
  if (!data.distributions.length) return;
  section("distributions", t("Distributions"),
    h("p", { class: "quiet about" }, t("Of one forward and backward pass before training. Bands hold the middle 50, 90 and 98 % of the values; where layers differ by much, the axis is logarithmic away from 0.")),
    data.distributions.map(distribution),
    h("p", { class: "quiet small about" }, t("Histograms: each row is a layer, the dotted line 0, and the number beside it how far it reaches. A thick bar at 0 stands for exact zeros, as high as they are frequent; they and 0.2 % at either end are left out of the histogram."), " ",
      data.distributions.flatMap((model) => model.left_out).join(" ")));
}

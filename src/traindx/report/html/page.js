"use strict";
// Puts the page together.

function bar() {
  const links = sections.map(([id, title]) => h("a", { href: `#${id}` }, title));
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => (dark() ? t("Light") : t("Dark"));
  const theme = button(name(), () => {
    const chosen = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    theme.textContent = name();
    try {
      localStorage.setItem("traindx-theme", chosen);
    } catch {
      // A page on disk may have no storage; the choice then lasts as long as the page.
    }
  }, { id: "theme", class: "quiet-button", "aria-label": t("Change the theme") });
  document.getElementById("bar").replaceChildren(h("div", { class: "bar" },
    h("b", { class: "brand" }, "traindx"), h("nav", { "aria-label": t("Sections") }, links), theme));
}

page.replaceChildren(header());
findings();
unchecked();
timeline();
if (data.preflight) pictures();
layers();
probed();
heatmap();
depths();
updates();
if (!data.preflight) pictures();
section("run", t("Run"), pairs("details", data.details));
bar();
if (data.findings.length) select(data.findings[0]);

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && opened !== null) closeLayer();
});
document.addEventListener("DOMContentLoaded", drawAll); // By then plotly, which comes last, is there.

let wasOpen = [];
addEventListener("beforeprint", () => {
  printing = true;
  wasOpen = [...document.querySelectorAll("details:not([open])")];
  for (const details of wasOpen) details.open = true;
  for (const one of document.querySelectorAll("article.finding, details")) one.dispatchEvent(new Event("unfold"));
  for (const cell of document.querySelectorAll("td[data-at]")) drawSpark(cell);
  page.classList.add("paper"); // The width of a sheet, so that plots are drawn to fit it.
  drawAll();
});
addEventListener("afterprint", () => {
  printing = false;
  for (const details of wasOpen) details.open = false;
  page.classList.remove("paper");
});

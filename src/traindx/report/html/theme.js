"use strict";
// The reader's last choice of theme, set before anything is drawn. A page on disk may have no storage.

function storedTheme() {
  try {
    return localStorage.getItem("traindx-theme");
  } catch {
    return null;
  }
}

if (["light", "dark"].includes(storedTheme())) document.documentElement.dataset.theme = storedTheme();

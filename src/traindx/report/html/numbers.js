"use strict";
// The numbers of all figures, stored once as float32 and looked up when a figure is drawn.

const ABSENT = -3.4028234663852886e38; // Nothing was measured here; NaN is a measurement.
const rows = new Map();

function bytes(text) {
  const binary = atob(text);
  const found = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) found[i] = binary.charCodeAt(i);
  return found;
}

// A row as it was measured. A constant row is stored as its number and its length.
function row(at) {
  if (!rows.has(at)) {
    const stored = data.stored[at];
    rows.set(at, Array.isArray(stored)
      ? new Float32Array(stored[1]).fill(stored[0])
      : new Float32Array(bytes(stored).buffer));
  }
  return rows.get(at);
}

const isShown = (value) => value !== ABSENT && Number.isFinite(value);

// As plotly wants it: null is a gap.
function curve(at) {
  return Array.from(row(at), (value) => (isShown(value) ? value : null));
}

const SHOWS = {
  values: (value) => (value === ABSENT ? null : value),
  log10: (value) => (isShown(value) && value > 0 ? Math.log10(value) : null),
  zero: (value) => (value === 0 ? 1 : null),
  broken: (value) => (Number.isFinite(value) ? null : 1),
};

function grid({ grid: at, shows }) {
  return data.grids[at].map((place) => Array.from(row(place), SHOWS[shows]));
}

// One byte a fraction: 0 for none, else 1 (1e-4) to 255 (1) on a logarithmic scale.
function fractions({ bytes: at, columns, shows }) {
  const codes = bytes(data.stored[at]);
  const exponent = (code) => ((code - 255) * 4) / 254;
  const value = shows === "log10" ? exponent : (code) => 100 * 10 ** exponent(code);
  const all = Array.from(codes, (code) => (code ? value(code) : null));
  return Array.from({ length: all.length / columns }, (_, i) => all.slice(i * columns, (i + 1) * columns));
}

// The parts of a figure that are stored once, put back; its numbers stay where they are.
function whole(node) {
  if (Array.isArray(node)) return node.map(whole);
  if (node === null || typeof node !== "object") return node;
  if ("same" in node) return whole(data.parts[node.same]);
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, whole(value)]));
}

// A figure with its numbers in place.
function resolved(node) {
  if (Array.isArray(node)) return node.map(resolved);
  if (node === null || typeof node !== "object") return node;
  if ("same" in node) return resolved(data.parts[node.same]);
  if ("at" in node) return curve(node.at);
  if ("texts" in node) return data.listed[node.texts];
  if ("grid" in node) return grid(node);
  if ("bytes" in node) return fractions(node);
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, resolved(value)]));
}

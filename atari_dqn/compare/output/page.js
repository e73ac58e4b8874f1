"use strict";
// Learning curves as SVG. A legend entry switches its curve off and on; pointing at a chart reads the values there.
const SVG = "http://www.w3.org/2000/svg";
// A chart is as wide as the page, so that its text is not smaller on a phone.
const WIDTH = Math.min(1000, document.querySelector("header").clientWidth), HEIGHT = 380, LEFT = 70, RIGHT = 22, TOP = 12, BOTTOM = 44;

function shape(parent, name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

function count(number) {
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (number >= unit) return +(number / unit).toPrecision(3) + name;
  return String(number);
}

function score(number) {
  const digits = Math.abs(number) < 1000 ? 1 : 0;
  return number.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// Round steps for an axis: at most `most` ticks at 1, 2 or 5 times a power of ten.
function ticks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(times => times * power).find(size => size >= rough);
  const found = [];
  for (let place = Math.ceil(low / step); place * step <= high; place++) found.push(place * step);
  return found;
}

function scales(curves, groups) {
  const frames = groups.flatMap(curve => curve.seeds.flatMap(seed => seed.frames));
  const values = curves.flatMap(curve => [...curve.low, ...curve.high, ...(curve.seeds || []).flatMap(seed => seed.values)]);
  const right = Math.max(...frames, 1);
  let low = Math.min(...values), high = Math.max(...values);
  if (!Number.isFinite(low)) [low, high] = [0, 1];
  const margin = (high - low || 1) * 0.05;
  [low, high] = [low - margin, high + margin];
  return {
    low, high, right,
    x: value => LEFT + (WIDTH - LEFT - RIGHT) * value / right,
    y: value => TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low),
    frames: pixels => right * (pixels - LEFT) / (WIDTH - LEFT - RIGHT),
  };
}

function axes(svg, scale) {
  for (const value of ticks(scale.low, scale.high, 6)) {
    shape(svg, "line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: scale.y(value), y2: scale.y(value) });
    shape(svg, "text", { x: LEFT - 8, y: scale.y(value) + 4, "text-anchor": "end" }).textContent = (value || 0).toLocaleString("en");
  }
  for (const value of ticks(0, scale.right, Math.ceil(WIDTH / 125)))
    shape(svg, "text", { x: scale.x(value), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }).textContent = count(value);
  shape(svg, "text", { x: WIDTH / 2, y: HEIGHT - 6, "text-anchor": "middle" }).textContent =
    "emulator frames; return of an evaluation, unclipped";
}

function path(scale, frames, values) {
  return values.map((value, place) => `${place ? "L" : "M"}${scale.x(frames[place])} ${scale.y(value)}`).join("");
}

// A curve of one evaluation is a point, where a line would show nothing.
function dot(layer, scale, frames, values, radius, colour) {
  if (frames.length === 1)
    shape(layer, "circle", { cx: scale.x(frames[0]), cy: scale.y(values[0]), r: radius, fill: colour });
}

const DASHES = ["7 4", "2 3", "9 3 2 3"];

function draw(svg, scale, curve, place) {
  const layer = shape(svg, "g", {});
  const published = curve.colour === undefined;
  const band = path(scale, curve.frames, curve.high) +
    path(scale, [...curve.frames].reverse(), [...curve.low].reverse()).replace("M", "L");
  const paint = published ? {} : { stroke: curve.colour };
  const dashes = published ? DASHES[place % DASHES.length] : curve.dashes.join(" ");
  const colour = curve.colour || "var(--dim)", [first] = curve.frames;
  if (curve.frames.length === 1)
    shape(layer, "line", {
      x1: scale.x(first), x2: scale.x(first), y1: scale.y(curve.low[0]), y2: scale.y(curve.high[0]),
      stroke: colour, "stroke-width": 8, opacity: 0.3,
    });
  else if (curve.frames.length)
    shape(layer, "path", { d: band, class: published ? "published-band" : "", opacity: 0.15, ...(published ? {} : { fill: curve.colour }) });
  for (const seed of curve.seeds || []) {
    shape(layer, "path", { d: path(scale, seed.frames, seed.values), fill: "none", opacity: 0.35, ...paint });
    dot(layer, scale, seed.frames, seed.values, 3, colour);
  }
  shape(layer, "path", {
    d: path(scale, curve.frames, curve.mean), fill: "none", class: published ? "published" : "",
    "stroke-width": published ? 1.5 : 2.5, "stroke-dasharray": dashes || "none", ...paint,
  });
  dot(layer, scale, curve.frames, curve.mean, 5, colour);
  return layer;
}

// The value of a curve's mean at a number of frames, on the straight line between its points.
function meanAt(curve, frames) {
  const next = curve.frames.findIndex(each => each >= frames);
  if (next < 0 || (next === 0 && curve.frames[0] > frames)) return null;
  if (next === 0) return curve.mean[0];
  const [left, right] = [curve.frames[next - 1], curve.frames[next]];
  return curve.mean[next - 1] + (curve.mean[next] - curve.mean[next - 1]) * (frames - left) / (right - left);
}

function legendEntry(legend, curve, layer, place) {
  const button = document.createElement("button"), mark = document.createElement("i");
  const label = document.createElement("span"), value = document.createElement("b");
  button.setAttribute("aria-pressed", "true");
  mark.style.borderTopColor = curve.colour || "var(--dim)";
  mark.style.borderTopStyle = curve.colour
    ? ["solid", "dashed", "dotted"][curve.dashes.length / 2]  // none, one kind of dash, two kinds
    : ["dashed", "dotted", "double"][place % 3];
  label.textContent = curve.label;
  button.append(mark, label, value);
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(shown));
    layer.style.display = shown ? "" : "none";
  });
  legend.append(button);
  return value;
}

function chart(figure, { groups, published }) {
  if (groups.every(group => group.seeds.length === 0)) {
    figure.textContent = "No evaluation yet.";
    return;
  }
  const curves = [...published, ...groups], scale = scales(curves, groups);
  const svg = shape(figure, "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  svg.setAttribute("aria-label", `learning curves of ${figure.dataset.game}`);
  axes(svg, scale);
  const legend = document.createElement("div");
  legend.className = "legend";
  figure.append(legend);
  const layers = new Map(curves.map((curve, place) => [curve, draw(svg, scale, curve, place)]));
  const values = new Map([...groups, ...published].map(curve => [curve, legendEntry(legend, curve, layers.get(curve), curves.indexOf(curve))]));
  const pointer = shape(svg, "line", { class: "axis", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const pixels = Math.min(Math.max((event.clientX - box.left) * WIDTH / box.width, LEFT), WIDTH - RIGHT);
    const frames = scale.frames(pixels);
    for (const [name, place] of [["x1", pixels], ["x2", pixels], ["visibility", "visible"]]) pointer.setAttribute(name, place);
    for (const [curve, value] of values) {
      const mean = meanAt(curve, frames);
      value.textContent = mean === null ? "" : `${score(mean)} at ${count(Math.round(frames))}`;
    }
  });
  svg.addEventListener("pointerleave", () => {
    pointer.setAttribute("visibility", "hidden");
    for (const value of values.values()) value.textContent = "";
  });
}

const CURVES = JSON.parse(document.getElementById("curves").textContent);
for (const figure of document.querySelectorAll(".chart")) chart(figure, CURVES[figure.dataset.game]);

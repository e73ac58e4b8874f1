"use strict";
// The player of recorded games. recording.js defines RECORDING and GAMES; game_N.js adds the data of a game to GAMES.
//
// Position t, from 0 to T − 1, is what the agent got before its decision t; position T is the end of the game.

const WINDOW_SECONDS = 20, SECOND = 1000;
const SPEEDS = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8];
const KEPT_CHUNKS = 6;
const HEATMAP = { red: 255, green: 50, blue: 210, opacity: 0.75 };
const TYPES = { "|u1": Uint8Array, "<f4": Float32Array, "<i4": Int32Array };
const STEP_MILLISECONDS = RECORDING.seconds_per_step * SECOND;
const STEPS_PER_SECOND = Math.max(1, Math.round(SECOND / STEP_MILLISECONDS));
const WINDOW_STEPS = Math.round(WINDOW_SECONDS / RECORDING.seconds_per_step);

const $ = id => document.getElementById(id);
const state = { game: null, position: 0, playing: false, time: 0 };
const rows = RECORDING.action_names.map(actionRow);

// Data: arrays as text, decompressed by the browser.

async function decode(packed) {
  const bytes = Uint8Array.from(atob(packed.zlib), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new TYPES[packed.dtype](await new Response(stream).arrayBuffer());
}

function loadScript(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${address} is missing from this folder`));
    script.src = address;
    document.head.append(script);
  });
}

async function loadGame(number) {
  if (!GAMES[number]) await loadScript(`game_${number}.js`);
  const data = GAMES[number], game = { data, chunks: new Map() };
  const [, height, width] = data.chunks[0].shape;
  for (const name of ["palette", "score", "lives", "frame", "obscured", "action", "explored", "values"])
    game[name] = await decode(data[name]);
  game.saliency = data.saliency && await decode(data.saliency);
  game.share = data.returns && await decode(data.returns.share);
  game.edgeMass = data.returns && data.returns.edge_mass && await decode(data.returns.edge_mass);
  game.steps = game.action.length;
  return Object.assign(game, { height, width }, valuesOf(game));
}

// The largest q-value of each step, the advantages, and the ranges of the charts.
function valuesOf(game) {
  const count = rows.length, best = new Float32Array(game.steps), advantages = new Float32Array(game.values.length);
  for (let step = 0; step < game.steps; step++) {
    const values = game.values.subarray(step * count, (step + 1) * count);
    const mean = values.reduce((sum, value) => sum + value, 0) / count;
    best[step] = Math.max(...values);
    values.forEach((value, action) => { advantages[step * count + action] = value - mean; });
  }
  const sizes = advantages.map(Math.abs).sort();
  const reach = Math.max(sizes[Math.floor(0.995 * (sizes.length - 1))], 1e-6);
  const sorted = best.slice().sort(), at = share => sorted[Math.round(share * (sorted.length - 1))];
  const range = game.data.returns || { low: at(0.005), high: at(0.995) };
  return { best, advantages, reach, range, bestRange: { low: at(0), high: at(1) } };
}

// Decode a chunk of screens, each of which is stored as its difference from the one before.
function chunkOf(game, number) {
  let chunk = game.chunks.get(number);
  game.chunks.delete(number);
  chunk ||= decode(game.data.chunks[number]).then(indices => {
    const size = game.height * game.width;
    for (let at = size; at < indices.length; at++) indices[at] ^= indices[at - size];
    return indices;
  });
  game.chunks.set(number, chunk); // the last one in the map is the one used last
  if (game.chunks.size > KEPT_CHUNKS) game.chunks.delete(game.chunks.keys().next().value);
  return chunk;
}

// The screen and the saliency map.

async function drawScreen(game, position) {
  const perChunk = game.data.screens_per_chunk, number = Math.floor(position / perChunk);
  const chunk = await chunkOf(game, number);
  if (game !== state.game || position !== state.position) return; // another one was selected meanwhile
  const size = game.height * game.width, first = (position % perChunk) * size;
  const image = new ImageData(game.width, game.height), dark = game.obscured[position] ? 4 : 1;
  for (let pixel = 0; pixel < size; pixel++) {
    const colour = 3 * chunk[first + pixel];
    for (let channel = 0; channel < 3; channel++)
      image.data[4 * pixel + channel] = game.palette[colour + channel] / dark;
    image.data[4 * pixel + 3] = 255;
  }
  $("screen").getContext("2d").putImageData(image, 0, 0);
  $("screen").dataset.position = position;
  if (number + 1 < game.data.chunks.length) chunkOf(game, number + 1); // the next one is ready in time
}

function drawSaliency(game, position) {
  const shown = game.saliency && position < game.steps && $("saliency-shown").checked;
  $("saliency").hidden = !shown;
  if (!shown) return;
  const side = game.data.saliency.shape[1], image = new ImageData(side, side);
  const map = game.saliency.subarray(position * side * side, (position + 1) * side * side);
  map.forEach((strength, place) => {
    image.data.set([HEATMAP.red, HEATMAP.green, HEATMAP.blue, HEATMAP.opacity * strength], 4 * place);
  });
  $("saliency").getContext("2d").putImageData(image, 0, 0);
}

// The numbers and the table of actions.

function actionRow(name) {
  const row = document.createElement("tr");
  row.innerHTML = '<td></td><td class="over-time"><canvas></canvas></td><td class="bar"><i></i></td><td class="advantage"></td>'
    + '<td class="value"></td>';
  row.cells[0].textContent = name;
  row.dataset.action = name;
  return row;
}

function decimals(number, plus = "") {
  return (number < 0 ? "−" : number > 0 ? plus : "") + Math.abs(number).toFixed(3);
}

function drawNumbers(game, position) {
  // whole tenths, or 59.95 seconds would be shown as 60.0
  const tenths = Math.floor(game.frame[position] * 10 / RECORDING.frames_per_second);
  $("score").textContent = game.score[position].toLocaleString("en").replace("-", "−");
  $("lives").textContent = game.lives[position] || "–";
  $("time").textContent = `${Math.floor(tenths / 600)}:${(tenths % 600 / 10).toFixed(1).padStart(4, "0")}`;
  $("step").textContent = `${position.toLocaleString("en")} of ${game.steps.toLocaleString("en")}`;
  $("position").value = position;
}

function drawActions(game, position) {
  const over = position === game.steps, count = rows.length, first = position * count;
  const selected = over ? -1 : game.action[position], random = !over && game.explored[position] === 1;
  $("decision").textContent = over ? "the game is over" : random ? "this action is random" : "";
  rows.forEach((row, action) => {
    const value = game.values[first + action], advantage = game.advantages[first + action];
    row.classList.toggle("selected", action === selected);
    row.classList.toggle("best", !over && value === game.best[position]);
    row.classList.toggle("random", random && action === selected);
    row.querySelector(".value").textContent = over ? "" : decimals(value);
    row.querySelector(".advantage").textContent = over ? "" : decimals(advantage, "+");
    const length = over ? 0 : 50 * Math.max(-1, Math.min(1, advantage / game.reach)), bar = row.querySelector("i");
    bar.style.left = `${50 + Math.min(length, 0)}%`;
    bar.style.width = `${Math.abs(length)}%`;
    drawAdvantages(row.querySelector("canvas"), game, position, action);
  });
}

// The charts.

// Return a cleared canvas' context in CSS pixels, its size and the colours of the page; null for a hidden canvas.
function surface(canvas) {
  const { width, height } = canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
  if (!width) return null;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  context.scale(ratio, ratio);
  context.font = "11px system-ui, sans-serif";
  return { context, width, height, colour: name => style.getPropertyValue(`--${name}`) };
}

function line(context, colour, points, width = 1.5) {
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.stroke();
}

function vertical(context, colour, x, top, bottom, width = 1) {
  line(context, colour, [[x, top], [x, bottom]], width);
}

// The steps of a window around a position, moved so that it does not leave the game.
function windowOf(game, position) {
  const length = Math.min(WINDOW_STEPS, game.steps);
  const first = Math.max(0, Math.min(position - Math.floor(length / 2), game.steps - length));
  return { first, length };
}

function drawAdvantages(canvas, game, position, action) {
  const drawn = surface(canvas);
  if (!drawn) return;
  const { context, width, height, colour } = drawn, { first, length } = windowOf(game, position);
  const points = [];
  for (let step = first; step < first + length; step++) {
    const share = Math.max(-1, Math.min(1, game.advantages[step * rows.length + action] / game.reach));
    points.push([(step - first + 0.5) / length * width, height / 2 * (1 - 0.9 * share)]);
  }
  line(context, colour("line"), [[0, height / 2], [width, height / 2]]);
  line(context, getComputedStyle(canvas).color, points, 1.2);
  vertical(context, colour("dim"), Math.min(position - first + 0.5, length) / length * width, 0, height);
}

// Write at the edge of a chart, legible over its lines.
function label({ context, colour }, text, x, y) {
  context.lineWidth = 3;
  context.strokeStyle = colour("raised");
  context.fillStyle = colour("dim");
  context.strokeText(text, x, y);
  context.fillText(text, x, y);
}

function rounded(number) {
  return number.toPrecision(3).replace("-", "−");
}

// Draw the largest q-value of some steps, with rewards and random actions, and the position as a line.
function drawValues(canvas, game, position, { first, length }, { low, high }, distributions) {
  const drawn = surface(canvas);
  if (!drawn) return;
  const { context, width, height, colour } = drawn, bottom = height - 8;
  const x = step => (step - first + 0.5) / length * width;
  const y = value => high > low ? bottom - Math.max(0, Math.min(1, (value - low) / (high - low))) * bottom : bottom / 2;
  if (distributions) drawDistributions(context, game, { first, length }, width, bottom, colour("greedy"));
  const points = [];
  for (let step = first; step < first + length; step++) {
    const reward = game.score[step + 1] - game.score[step];
    if (reward) vertical(context, colour(reward > 0 ? "gain" : "loss"), x(step + 1), 0, bottom, 1.5);
    if (game.explored[step]) vertical(context, colour("random"), x(step), bottom + 2, height, 1.5);
    points.push([x(step), y(game.best[step])]);
  }
  line(context, colour("greedy"), points);
  vertical(context, colour("ink"), Math.min(x(position), width - 0.5), 0, height);
  label(drawn, rounded(low), 4, bottom - 4);
  label(drawn, rounded(high), 4, 12);
}

// Draw the value distribution of each step as a column, high returns at the top; the opacity is the probability mass.
function drawDistributions(context, game, { first, length }, width, height, colour) {
  const bins = game.data.returns.share.shape[1], column = new OffscreenCanvas(length, bins);
  const image = new ImageData(length, bins), [red, green, blue] = colour.match(/[0-9a-f]{2}/gi).map(part => parseInt(part, 16));
  for (let step = 0; step < length; step++)
    for (let bin = 0; bin < bins; bin++) {
      const share = game.share[(first + step) * bins + bin];
      image.data.set([red, green, blue, 0.6 * share], 4 * ((bins - 1 - bin) * length + step));
    }
  column.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(column, 0, 0, width, height);
}

function drawReturns(game, position) {
  if (!game.share) return;
  const drawn = surface($("returns"));
  if (!drawn) return;
  const { context, width, height, colour } = drawn, { low, high } = game.range, bottom = height - 18;
  const bins = game.data.returns.share.shape[1], over = position === game.steps;
  context.fillStyle = colour("greedy");
  for (let bin = 0; bin < bins && !over; bin++) {
    const length = game.share[position * bins + bin] / 255 * (bottom - 6);
    context.fillRect(bin / bins * width + 0.5, bottom - length, width / bins - 1, length);
  }
  line(context, colour("line"), [[0, bottom], [width, bottom]]);
  if (!over) vertical(context, colour("ink"), (game.best[position] - low) / (high - low) * width, 0, bottom, 1.5);
  label(drawn, rounded(low), 4, height - 5);
  context.textAlign = "right";
  label(drawn, rounded(high), width - 4, height - 5);
  const percent = mass => `${(100 * mass).toFixed(1)} %`, edges = game.edgeMass;
  $("edges").textContent = edges && !over
    ? `edges ${percent(edges[2 * position])}, ${percent(edges[2 * position + 1])}` : "";
}

// Positions, playing, and input.

function draw() {
  const { game, position } = state;
  if (!game) return;
  drawNumbers(game, position);
  drawActions(game, position);
  drawSaliency(game, position);
  drawReturns(game, position);
  drawValues($("recent"), game, position, windowOf(game, position), game.range, game.share);
  drawValues($("whole"), game, position, { first: 0, length: game.steps }, game.bestRange, null);
  $("value").textContent = position < game.steps ? decimals(game.best[position]) : "";
  drawScreen(game, position).catch(report);
}

function go(position) {
  if (!state.game) return;
  state.position = Math.max(0, Math.min(position, state.game.steps));
  draw();
}

function play(playing) {
  if (playing && state.position === state.game.steps) go(0);
  state.playing = playing;
  $("play").classList.toggle("playing", playing);
  state.time = performance.now();
  if (playing) requestAnimationFrame(advance);
}

function advance(now) {
  if (!state.playing) return;
  const milliseconds = STEP_MILLISECONDS / Number($("speed").value);
  const steps = Math.floor((now - state.time) / milliseconds);
  if (steps > 0) {
    state.time += steps * milliseconds;
    go(state.position + steps);
  }
  if (state.position === state.game.steps) play(false);
  else requestAnimationFrame(advance);
}

function step(steps) {
  play(false);
  go(state.position + steps);
}

function changeSpeed(by) {
  const select = $("speed");
  select.selectedIndex = Math.max(0, Math.min(select.selectedIndex + by, select.length - 1));
}

const KEYS = {
  " ": () => play(!state.playing),
  ArrowLeft: shift => step(shift ? -STEPS_PER_SECOND : -1),
  ArrowRight: shift => step(shift ? STEPS_PER_SECOND : 1),
  Home: () => step(-Infinity),
  End: () => step(Infinity),
  "[": () => changeSpeed(-1),
  "]": () => changeSpeed(1),
  s: () => $("saliency-shown").click(),
};

function onKey(event) {
  const action = KEYS[event.key], modified = event.ctrlKey || event.metaKey || event.altKey;
  const own = event.target.matches("select") || (event.key === " " && event.target.matches("button, [type=checkbox]"));
  if (!action || !state.game || modified || own) return;
  event.preventDefault();
  action(event.shiftKey);
}

function onPoint(event) {
  if (event.type === "pointermove" && !event.buttons) return;
  const box = $("whole").getBoundingClientRect();
  play(false);
  go(Math.floor((event.clientX - box.left) / box.width * state.game.steps));
}

async function select(number) {
  const game = await loadGame(number);
  if ($("game").value !== String(number)) return; // another one was selected meanwhile
  [$("screen").width, $("screen").height] = [game.width, game.height];
  if (game.saliency) [$("saliency").width, $("saliency").height] = [game.data.saliency.shape[2], game.data.saliency.shape[1]];
  $("position").max = game.steps;
  $("saliency-switch").hidden = !game.saliency;
  $("returns-section").hidden = !game.share;
  $("player").hidden = false;
  state.game = game;
  step(-Infinity);
}

function report(error) {
  $("message").textContent = String(error.message || error);
  $("message").hidden = false;
}

function describe() {
  const name = RECORDING.game.replaceAll("_", " ");
  document.title = $("title").textContent = name[0].toUpperCase() + name.slice(1);
  const frames = RECORDING.env_frames.toLocaleString("en");
  $("about").textContent = `an agent trained for ${frames} emulator frames, seed ${RECORDING.seed}; ${RECORDING.choice}`;
  $("protocol").textContent = `Protocol ${RECORDING.protocol_digest}: ${RECORDING.protocol}. Written by ${RECORDING.written_by}.`;
  $("actions").append(...rows);
  $("actions").classList.toggle("many", rows.length > 9);
  $("game-select").hidden = RECORDING.games.length === 1;
  $("game").append(...RECORDING.games.map((game, place) => new Option(`${game.episode}: return ${game.return}`, place + 1)));
  $("speed").append(...SPEEDS.map(speed => new Option(speed < 1 ? `1/${1 / speed}` : `${speed}`, speed)));
  $("speed").value = 1;
}

function listen() {
  const CLICKS = {
    first: () => step(-Infinity), back: () => step(-1), play: () => play(!state.playing), forward: () => step(1),
    last: () => step(Infinity),
  };
  for (const [id, action] of Object.entries(CLICKS)) $(id).addEventListener("click", action);
  $("position").addEventListener("input", event => { play(false); go(Number(event.target.value)); });
  $("game").addEventListener("change", event => select(Number(event.target.value)).catch(report));
  $("saliency-shown").addEventListener("change", draw);
  for (const type of ["pointerdown", "pointermove"]) $("whole").addEventListener(type, onPoint);
  addEventListener("keydown", onKey);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

describe();
listen();
select(1).catch(report);

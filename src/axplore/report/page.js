"use strict";
// The map and the panel of a goal. Everything shown comes from the JSON block; text is only ever set as text.
(async () => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const { labels, members, layout } = content;
  const byId = (id) => document.getElementById(id);
  const statusOf = (place) => content.statusNames[content.statuses[place]];
  const className = (place) => statusOf(place).replace(" ", "-");
  const READABLE = 300; // so many states have their names on the map from the start
  const MAX_ARROWS = 400; // states whose choice is drawn
  const WIDTH = 1000;
  const RAMP = ["#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"]; // viridis
  const STATUS_COLOURS = { certified: "var(--certified)", open: "var(--open)", "set aside": "var(--aside)" };
  let chosen = null;
  let names = []; // texts beside nodes

  // ---- elements -------------------------------------------------------------------------------------------------

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  const svg = (name, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
  const short = (text, length = 14) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
  const percent = (part) =>
    part > 0 && part < 0.001 ? "less than 0.1 %" : part < 1 && part > 0.999 ? "more than 99.9 %" : `${+(100 * part).toFixed(1)} %`;
  const say = (text) => { byId("status").textContent = text; };

  // ---- packed arrays --------------------------------------------------------------------------------------------

  async function unpacked({ type, data }) {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    return new { int8: Int8Array, int16: Int16Array, int32: Int32Array, float64: Float64Array }[type](buffer);
  }
  const [statePairs, pairVisits, rowOffsets, successors, counts, choices, provenChances, boundLower, boundUpper] = await Promise.all(
    ["statePairs", "visitsOfPairs", "rowOffsets", "successors", "counts", "choices", "chances", "boundLower", "boundUpper"].map((name) => unpacked(content[name])));
  const chanceStarts = [0];
  for (const length of content.chanceLengths) chanceStarts.push(chanceStarts[chanceStarts.length - 1] + length);
  const policyStarts = [0];
  content.widths.forEach((width, goal) =>
    policyStarts.push(policyStarts[goal] + width * Math.max(1, content.horizons[goal])));

  // ---- policies -------------------------------------------------------------------------------------------------

  const hasPolicy = (goal) => goal < content.widths.length;

  /** What a policy plays in a state of the atlas at a step of its journey, which RESET begins anew: the number of an
   * action, or content.reset. */
  function choice(goal, place, step) {
    const width = content.widths[goal];
    const horizon = content.horizons[goal];
    if (place >= members || place >= width || place === goal) return content.reset;
    if (!horizon) return choices[policyStarts[goal] + place];
    return step >= horizon ? content.reset : choices[policyStarts[goal] + step * width + place];
  }
  const actionName = (place, action) =>
    action === content.reset ? "RESET" : content.actionLists[content.actionListOf[place]][action];

  /** The states after an action with their frequencies; none if it was never drawn. */
  function outcomes(place, action) {
    if (action === content.reset) return [[0, 1]];
    const pair = statePairs[place] + action;
    if (!pairVisits[pair]) return [];
    const found = [];
    for (let entry = rowOffsets[pair]; entry < rowOffsets[pair + 1]; entry++) {
      found.push([successors[entry], counts[entry] / pairVisits[pair]]);
    }
    return found.sort((a, b) => b[1] - a[1]);
  }

  /** Follows a policy by the observed frequencies: the chance to have arrived after 0, 1, ... steps, at which step of
   * a journey each state is first met, and how often. What leaves the atlas resets. */
  function journey(goal) {
    const horizon = content.horizons[goal];
    const empty = () => Array.from({ length: horizon + 1 }, () => new Float64Array(members + 1)); // by step of a journey
    let mass = empty(); // of each state, and last of all states outside
    mass[0][0] = 1;
    const firstStep = new Map();
    const visits = new Float64Array(members);
    const arrived = [goal === 0 ? 1 : 0];
    const limit = Math.min(5000, Math.max(60, Math.ceil(40 * (content.shownSteps[goal] || 1))));
    while (arrived.length <= limit && arrived[arrived.length - 1] < 1 - 1e-6) {
      const next = empty();
      let there = arrived[arrived.length - 1];
      mass.forEach((masses, step) => {
        const later = next[horizon ? Math.min(step + 1, horizon) : 0];
        next[0][0] += masses[members];
        for (let place = 0; place < members; place++) {
          if (!masses[place]) continue;
          if (!firstStep.has(place)) firstStep.set(place, step);
          visits[place] += masses[place];
          const action = choice(goal, place, step);
          if (action === content.reset) {
            next[0][0] += masses[place];
            continue;
          }
          for (const [successor, part] of outcomes(place, action)) {
            if (successor === goal) there += masses[place] * part;
            else later[successor < 0 || successor >= members ? members : successor] += masses[place] * part;
          }
        }
      });
      mass = next;
      arrived.push(Math.min(1, there));
    }
    return { arrived, firstStep, visits };
  }

  /** The most likely way from the initial state to the goal, as places; by Dijkstra's algorithm on -log frequencies. */
  function likeliestWay(goal, { firstStep }) {
    const cost = new Map([[0, 0]]);
    const before = new Map();
    const done = new Set();
    for (;;) {
      let place = -1;
      for (const [candidate, value] of cost) {
        if (!done.has(candidate) && (place < 0 || value < cost.get(place))) place = candidate;
      }
      if (place < 0) return null;
      if (place === goal) break;
      done.add(place);
      if (!firstStep.has(place)) continue;
      const action = choice(goal, place, firstStep.get(place));
      if (action === content.reset) continue;
      for (const [successor, part] of outcomes(place, action)) {
        if (successor < 0 || successor >= members || done.has(successor)) continue;
        const through = cost.get(place) - Math.log(part);
        if (!(cost.get(successor) <= through)) {
          cost.set(successor, through);
          before.set(successor, place);
        }
      }
    }
    const way = [goal];
    while (way[0] !== 0) way.unshift(before.get(way[0]));
    return way;
  }

  // ---- the map --------------------------------------------------------------------------------------------------

  const map = byId("map");
  const layers = { ground: svg("g"), nodes: svg("g"), names: svg("g"), way: svg("g") };
  map.append(layers.ground, layers.nodes, layers.way, layers.names);
  map.classList.toggle("grid-map", layout.kind === "grid");
  const spot = new Map(layout.drawn.map((place, i) => [place, { x: layout.x[i], y: layout.y[i] }]));
  const nodes = new Map();
  const isGrid = layout.kind === "grid";
  const size = layout.size;

  function drawGround() {
    for (const [steps, radius] of layout.rings) {
      const limit = steps === content.radius;
      const middle = layout.height / 2;
      layers.ground.append(svg("circle", { class: limit ? "ring limit" : "ring", cx: WIDTH / 2, cy: middle, r: radius }));
      if (radius + 17 < middle) {
        layers.ground.append(svg("text", { class: "ring-label", x: WIDTH / 2, y: middle + radius + 17, "font-size": 15 },
          `${steps}${limit ? " steps: the radius" : ""}`));
      }
    }
    if (!isGrid) return;
    const taken = new Set(layout.drawn.map((_, i) => `${layout.x[i]} ${layout.y[i]}`));
    const [rows, columns] = layout.cells;
    const left = WIDTH / 2 - columns * size;
    const unseen = "never seen, or no state." + (content.unseenLower === null ? "" :
      ` What was never seen takes at least ${content.unseenLower} expected steps.`);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const x = left + 2 * column * size, y = 40 + 2 * row * size;
        if (taken.has(`${+(x + size).toFixed(2)} ${+(y + size).toFixed(2)}`)) continue;
        layers.ground.append(svg("rect", { class: "empty", x: x + 1, y: y + 1, width: 2 * size - 2, height: 2 * size - 2 },
          svg("title", {}, unseen)));
      }
    }
  }

  /** The outline of a state around (0, 0): circles are certified, squares set aside, diamonds open; cells in a grid. */
  function outline(status, half, inGrid) {
    if (inGrid) return `M${-half} ${-half}H${half}V${half}H${-half}Z`;
    if (status === "certified") return `M${-half} 0A${half} ${half} 0 1 1 ${half} 0A${half} ${half} 0 1 1 ${-half} 0Z`;
    if (status === "open") return `M0 ${-1.25 * half}L${1.25 * half} 0L0 ${1.25 * half}L${-1.25 * half} 0Z`;
    const side = 0.8 * half;
    return `M${-side} ${-side}H${side}V${side}H${-side}Z`;
  }

  function symbol(status, half, inGrid, member) {
    const parts = [svg("path", { class: "shape", d: outline(status, half, inGrid) })];
    const arm = (inGrid ? 0.45 : 0.55) * half;
    if (status === "set aside") parts.push(svg("path", { class: "mark", d: `M${-arm} ${-arm}L${arm} ${arm}M${-arm} ${arm}L${arm} ${-arm}` }));
    if (status === "open" && !member && half > 5) {
      parts.push(svg("text", { class: "value", y: 0.4 * half, "font-size": 1.1 * half, fill: "currentColor" }, "?"));
    }
    return parts;
  }

  /** Whether nothing can be played in a state of the atlas but RESET. */
  const onlyResets = (place) => place < members && content.actionLists[content.actionListOf[place]].length === 0;

  function drawNodes() {
    for (const place of layout.drawn) {
      const { x, y } = spot.get(place);
      const member = place < members;
      const half = isGrid ? size - Math.max(0.5, size * 0.05) : size;
      const node = svg("g", {
        class: `node ${className(place)}${member ? "" : " left-out"}${place === 0 ? " initial" : ""}`,
        id: `state-${place}`, "data-place": place, role: "button", tabindex: place === 0 ? 0 : -1, "aria-pressed": "false",
        transform: `translate(${x} ${y})`,
      }, svg("title", {}, describe(place)), ...symbol(statusOf(place), half, isGrid, member));
      if (onlyResets(place)) node.append(svg("path", { class: "terminal", d: outline(statusOf(place), (isGrid ? 0.93 : 0.82) * half, isGrid) }));
      nodes.set(place, node);
      layers.nodes.append(node);
    }
  }

  function describe(place) {
    const steps = !content.proven ? (place < members ? `about ${content.lowerText[place]} steps, not proven` : "left out") :
      place < members ? `${content.lowerText[place]} to ${content.upperText[place]} expected steps` :
      `at least ${content.lowerText[place]} expected steps`;
    return `${labels[place]}: ${content.proven ? statusOf(place) + ", " : ""}${steps}${onlyResets(place) ? "; only resets" : ""}`;
  }

  // ---- colours --------------------------------------------------------------------------------------------------

  const measures = {
    steps: (place) => content.shownSteps[place],
    width: (place) => (content.upper[place] === null ? null : content.upper[place] - content.lower[place]),
    visits: (place) => Math.log10(1 + content.visits[place]),
  };

  function onRamp(part) {
    const at = Math.max(0, Math.min(1, part)) * (RAMP.length - 1);
    const first = Math.min(RAMP.length - 2, Math.floor(at));
    const channel = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
    const mixed = [0, 1, 2].map((i) => channel(RAMP[first], i) * (1 - at + first) + channel(RAMP[first + 1], i) * (at - first));
    const dark = 0.3 * mixed[0] + 0.59 * mixed[1] + 0.11 * mixed[2] < 125;
    return { fill: `rgb(${mixed.map(Math.round).join(" ")})`, ink: dark ? "#fff" : "#000" };
  }

  function paint() {
    const mode = byId("colour").value;
    const inside = layout.drawn.filter((place) => place < members);
    const values = mode === "status" ? [] : inside.map(measures[mode]).filter((value) => value !== null);
    const low = Math.min(...values), high = Math.max(...values);
    for (const [place, node] of nodes) {
      let colour = { fill: "", ink: "var(--ink)" };
      if (mode === "status") {
        if (place < members) colour = { fill: STATUS_COLOURS[statusOf(place)], ink: "var(--paper)" };
      } else if (place < members) {
        const value = measures[mode](place);
        colour = value === null ? { fill: "var(--line)", ink: "var(--ink)" } : onRamp(high > low ? (value - low) / (high - low) : 0);
      }
      node.querySelector(".shape").style.fill = colour.fill;
      node.ink = colour.ink;
      const inner = node.querySelector(".terminal");
      if (inner) inner.style.stroke = colour.ink;
    }
    drawLegend(mode, low, high);
    drawNames();
  }

  function drawLegend(mode, low, high) {
    const items = [];
    const present = new Set(layout.drawn.map((place) => `${statusOf(place)}|${place < members}`));
    const meaning = content.proven
      ? { "certified|true": "certified", "open|true": "in the atlas, not fully proven", "open|false": "open: left out, undecided", "set aside|false": "set aside: proven too far" }
      : { "open|true": "found, not proven", "open|false": "left out, not proven" };
    for (const [key, text] of Object.entries(meaning)) {
      if (!present.has(key)) continue;
      const [status, member] = key.split("|");
      const icon = svg("svg", { viewBox: "-10 -10 20 20", "aria-hidden": "true" },
        svg("g", { class: `node ${status.replace(" ", "-")}${member === "true" ? "" : " left-out"}` }, ...symbol(status, 8, isGrid, member === "true")));
      if (member === "true") icon.querySelector(".shape").style.fill = mode === "status" ? STATUS_COLOURS[status] : RAMP[2];
      items.push(html("span", {}, icon, ` ${text}`));
    }
    if (mode !== "status" && Number.isFinite(low)) {
      const ramp = html("span", { class: "ramp", "aria-hidden": "true" });
      ramp.style.background = `linear-gradient(to right, ${RAMP.join(",")})`;
      const shown = (value) => (mode === "visits" ? Math.round(10 ** value - 1).toLocaleString("en") : value.toFixed(2));
      const unit = { steps: "expected steps", width: "width of the bounds", visits: "draws, logarithmic" }[mode];
      items.push(html("span", {}, `${shown(low)} `, ramp, ` ${shown(high)} ${unit}`));
    }
    items.push(html("span", {}, "thick outline: the initial state"));
    if (layout.drawn.some(onlyResets)) items.push(html("span", {}, "double outline: only resets"));
    byId("legend").replaceChildren(...items);
  }

  // ---- names on the map: as many as fit without covering each other ---------------------------------------------

  function drawNames() {
    layers.names.replaceChildren();
    names = [];
    const scale = view.width / WIDTH;
    const visible = layout.drawn.filter((place) => {
      const { x, y } = spot.get(place);
      return x >= view.x && x <= view.x + view.width && y >= view.y && y <= view.y + view.height &&
        !nodes.get(place).classList.contains("unmet");
    });
    if (visible.length > READABLE) return;
    if (isGrid) for (const place of visible) nameCell(place);
    else nameNodes(visible, 16 * scale);
  }

  function nameCell(place) {
    const { x, y } = spot.get(place);
    const ink = place < members && !nodes.get(place).classList.contains("pending") ? nodes.get(place).ink : "var(--soft)";
    const text = (words, left, top, font, anchor) => {
      const element = svg("text", { class: "name", x: left, y: top, "font-size": font }, words);
      Object.assign(element.style, { fill: ink, textAnchor: anchor, opacity: nodes.get(place).classList.contains("beyond") ? 0.35 : 1 });
      layers.names.append(element);
    };
    const name = short(labels[place], 10);
    text(name, x - 0.85 * size, y - 0.55 * size, Math.min(0.36 * size, (2.6 * size) / name.length), "start");
    if (place < members && chosen === null) text(content.shownSteps[place].toFixed(1), x, y + 0.35 * size, 0.62 * size, "middle");
  }

  function nameNodes(visible, font) {
    const boxes = [];
    const overlaps = (box) => boxes.some((other) =>
      box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
    const fits = (place, x, y, text) => {
      const half = 0.31 * font * text.length;
      const box = [x - half, y - font, x + half, y + 0.25 * font];
      if (overlaps(box)) return false;
      boxes.push(box);
      layers.names.append(svg("text", { class: "name", x, y, "font-size": font }, text));
      return true;
    };
    for (const place of visible) {
      const { x, y } = spot.get(place);
      boxes.push([x - 0.7 * size, y - 0.7 * size, x + 0.7 * size, y + 0.7 * size]);
    }
    const important = chosen !== null && visible.includes(chosen) ? [chosen, ...visible] : visible;
    const named = new Set();
    for (const place of important) {
      if (named.has(place)) continue;
      const { x, y } = spot.get(place);
      const text = short(labels[place]);
      const aside = 1.2 * size + 0.31 * font * text.length;
      [[x, y - 1.25 * size - 2], [x, y + 1.25 * size + font], [x + aside, y + 0.35 * font], [x - aside, y + 0.35 * font]]
        .some(([left, top]) => fits(place, left, top, text));
      named.add(place);
    }
  }

  // ---- sliders --------------------------------------------------------------------------------------------------

  const radiusSlider = byId("radius"), replaySlider = byId("replay");

  function prepareSliders() {
    const top = Math.ceil(10 * (content.radius + content.epsilon)) / 10;
    fill(radiusSlider, { min: 0, max: top, step: top > 20 ? 0.5 : 0.1 }, []);
    radiusSlider.value = top;
    replaySlider.max = members;
    replaySlider.value = members;
  }

  function filter() {
    const radius = +radiusSlider.value, stage = +replaySlider.value;
    const everything = radius >= +radiusSlider.max;
    const metBy = Math.max(...content.numbers.slice(0, stage));
    let within = 0, undecided = 0, beyond = 0;
    for (let place = 0; place < labels.length; place++) {
      const lower = content.lower[place], upper = content.proven ? content.upper[place] : lower;
      const isBeyond = lower > radius || (!content.proven && place >= members);
      if (upper !== null && upper <= radius && place < members) within++;
      else if (isBeyond) beyond++;
      else undecided++;
      const node = nodes.get(place);
      if (!node) continue;
      const pending = stage < members && place >= stage;
      node.classList.toggle("beyond", !everything && isBeyond);
      node.classList.toggle("pending", pending);
      node.classList.toggle("unmet", pending && content.numbers[place] > metBy);
    }
    byId("radius-value").textContent = radius.toFixed(1);
    byId("replay-value").textContent = `${stage} of ${members}, at step ${content.foundAt[stage - 1].toLocaleString("en")}`;
    byId("within").textContent = content.proven
      ? `Within ${radius.toFixed(1)} expected steps: ${within} states for sure, ${undecided} perhaps, ${beyond} surely not.`
      : `Within ${radius.toFixed(1)} steps by the explorer’s estimates: ${within} states; nothing is proven.`;
    drawNames();
  }

  let playing = null;
  function play() {
    if (playing) {
      clearInterval(playing);
      playing = null;
      byId("play").textContent = "play";
      return;
    }
    if (+replaySlider.value >= members) replaySlider.value = 1;
    byId("play").textContent = "pause";
    const stride = Math.max(1, Math.round(members / 100));
    playing = setInterval(() => {
      replaySlider.value = Math.min(members, +replaySlider.value + stride);
      filter();
      if (+replaySlider.value >= members) play();
    }, Math.max(60, Math.min(600, 8000 / members)));
  }

  // ---- zoom -----------------------------------------------------------------------------------------------------

  const view = { x: 0, y: 0, width: WIDTH, height: layout.height };
  function look() {
    map.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    drawNames();
  }
  function zoom(factor, x = view.x + view.width / 2, y = view.y + view.height / 2) {
    const width = Math.max(WIDTH / 40, Math.min(WIDTH, view.width * factor));
    const real = width / view.width;
    view.x = x - (x - view.x) * real;
    view.y = y - (y - view.y) * real;
    view.width = width;
    view.height *= real;
    if (width === WIDTH) Object.assign(view, { x: 0, y: 0, height: layout.height });
    look();
  }
  function prepareZoom() {
    byId("zoom-in").onclick = () => zoom(0.7);
    byId("zoom-out").onclick = () => zoom(1 / 0.7);
    byId("zoom-fit").onclick = () => zoom(1e9);
    map.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return; // the page scrolls
      event.preventDefault();
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
      zoom(event.deltaY < 0 ? 0.85 : 1 / 0.85, at.x, at.y);
    }, { passive: false });
    let held = null;
    map.addEventListener("pointerdown", (event) => {
      if (event.target.closest(".node") || view.width === WIDTH) return;
      held = { x: event.clientX, y: event.clientY };
      map.setPointerCapture(event.pointerId);
      map.classList.add("held");
    });
    map.addEventListener("pointermove", (event) => {
      if (!held) return;
      const scale = view.width / map.clientWidth;
      view.x -= (event.clientX - held.x) * scale;
      view.y -= (event.clientY - held.y) * scale;
      held = { x: event.clientX, y: event.clientY };
      map.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    });
    const release = () => { if (held) { held = null; map.classList.remove("held"); drawNames(); } };
    map.addEventListener("pointerup", release);
    map.addEventListener("pointercancel", release);
  }

  // ---- the way to a goal ----------------------------------------------------------------------------------------

  function drawWay(goal, { firstStep, visits }) {
    layers.way.replaceChildren();
    const all = [...firstStep.keys()].filter((place) => spot.has(place)).sort((a, b) => visits[b] - visits[a]);
    for (const place of all.slice(0, MAX_ARROWS)) {
      const action = choice(goal, place, firstStep.get(place));
      if (action === content.reset) drawReset(place);
      else if (isGrid) drawMove(place, action);
      else for (const [successor, part] of outcomes(place, action)) drawArrow(place, successor, part);
    }
    return all.length - Math.min(all.length, MAX_ARROWS);
  }

  function head(x, y, dx, dy, length) {
    const [sx, sy] = [-dy, dx].map((side) => side * length * 0.5);
    const [bx, by] = [x - dx * length, y - dy * length];
    return svg("path", { class: "arrow-head", d: `M${x} ${y}L${bx + sx} ${by + sy}L${bx - sx} ${by - sy}Z` });
  }

  function drawReset(place) {
    const { x, y } = spot.get(place);
    const r = 0.5 * size;
    layers.way.append(svg("path", { class: "reset", "stroke-width": Math.max(1, 0.14 * size), d: `M${x + r} ${y}A${r} ${r} 0 1 1 ${x} ${y - r}` }));
    layers.way.append(head(x + 0.35 * size, y - r, 1, 0, 0.4 * size));
  }

  /** The direction in which an action tends in a grid, over all states and rounded to an eighth of a turn; or null. */
  const tendencies = new Map();
  function tendency(name) {
    if (tendencies.has(name)) return tendencies.get(name);
    // Where a wall holds it back, an action tends elsewhere: such states count only if there are no others.
    const moves = { free: [0, 0, 0], held: [0, 0, 0] };
    for (const place of layout.drawn) {
      const action = place < members ? content.actionLists[content.actionListOf[place]].indexOf(name) : -1;
      const found = action < 0 ? [] : outcomes(place, action);
      const sum = found.some(([successor]) => successor === place) ? moves.held : moves.free;
      for (const [successor, part] of found) {
        const from = spot.get(place), to = spot.get(successor);
        if (to) [to.x - from.x, to.y - from.y, 1].forEach((value, i) => { sum[i] += part * value; });
      }
    }
    const [x, y, total] = moves.free[2] ? moves.free : moves.held;
    const turn = (Math.round(Math.atan2(y, x) / (Math.PI / 4)) * Math.PI) / 4;
    const found = Math.hypot(x, y) > 0.2 * size * total ? [Math.cos(turn), Math.sin(turn)] : null;
    tendencies.set(name, found);
    return found;
  }

  /** In a grid: where an action led as fine lines, and the direction in which it tends as an arrow. */
  function drawMove(place, action) {
    const from = spot.get(place);
    for (const [successor, part] of outcomes(place, action)) {
      const to = spot.get(successor);
      if (!to || successor === place) continue;
      const length = Math.hypot(to.x - from.x, to.y - from.y);
      const reach = Math.min(1, (0.97 * size) / length);
      layers.way.append(svg("line", { class: "arrow", "stroke-width": 0.03 * size + 0.07 * size * part, "stroke-dasharray": 0.1 * size,
        x1: from.x, y1: from.y, x2: from.x + reach * (to.x - from.x), y2: from.y + reach * (to.y - from.y) }));
    }
    const direction = tendency(actionName(place, action));
    if (!direction) {
      layers.way.append(svg("circle", { class: "arrow-head", cx: from.x, cy: from.y, r: 0.2 * size }));
      return;
    }
    const [dx, dy] = direction;
    const [tail, neck, tip] = [-0.4 * size, 0.15 * size, 0.62 * size];
    for (const [name, width] of [["arrow casing", 0.26], ["arrow", 0.15]]) {
      layers.way.append(svg("line", { class: name, "stroke-width": width * size, x1: from.x + dx * tail, y1: from.y + dy * tail,
        x2: from.x + dx * neck, y2: from.y + dy * neck }));
    }
    layers.way.append(head(from.x + dx * tip, from.y + dy * tip, dx, dy, 0.55 * size));
  }

  function drawArrow(place, successor, part) {
    const from = spot.get(place), to = spot.get(successor);
    if (!to || part < 0.01) return;
    const width = Math.max(0.8, Math.min(4, 0.2 * size) * Math.sqrt(part));
    const opacity = 0.35 + 0.65 * part;
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    if (length < 1) {
      const r = 0.8 * size;
      layers.way.append(svg("circle", { class: "reset", "stroke-width": width, "stroke-opacity": opacity, cx: from.x + r, cy: from.y - r, r }));
      return;
    }
    const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
    const bend = 0.12 * length; // so that a way there and a way back are two
    const [mx, my] = [(from.x + to.x) / 2 - dy * bend, (from.y + to.y) / 2 + dx * bend];
    const [ex, ey] = [to.x - mx, to.y - my];
    const end = Math.hypot(ex, ey);
    const [ux, uy] = [ex / end, ey / end];
    const tip = Math.min(1.15 * size + 1, 0.6 * end);
    const point = Math.max(4, 3 * width);
    const [tx, ty] = [to.x - ux * tip, to.y - uy * tip];
    layers.way.append(svg("path", { class: "arrow", "stroke-width": width, "stroke-opacity": opacity,
      d: `M${from.x} ${from.y}Q${mx} ${my} ${tx - ux * point * 0.8} ${ty - uy * point * 0.8}` }));
    const tipElement = head(tx, ty, ux, uy, point);
    tipElement.setAttribute("fill-opacity", opacity);
    layers.way.append(tipElement);
  }

  // ---- the panel ------------------------------------------------------------------------------------------------

  function sentence(goal, place, step) {
    const action = choice(goal, place, step);
    const item = html("li", {});
    if (action === content.reset) {
      item.append("in ", html("b", {}, labels[place]), " RESET");
      return item;
    }
    const found = outcomes(place, action);
    const parts = found.slice(0, 4).map(([successor, part]) => `${successor < 0 ? "elsewhere" : labels[successor]} (${percent(part)})`);
    if (found.length > 4) parts.push(`${found.length - 4} others`);
    item.append("in ", html("b", {}, labels[place]), " play ", html("b", {}, actionName(place, action)), parts.length ? `, which led to ${parts.join(", ")}` : "");
    return item;
  }

  function routeInWords(goal, travelled) {
    const way = likeliestWay(goal, travelled);
    if (!way) return [html("p", {}, "No way through the states of the atlas was observed.")];
    const list = html("ol", { id: "route" });
    for (const place of way.slice(0, -1).slice(0, 60)) list.append(sentence(goal, place, travelled.firstStep.get(place)));
    const parts = [html("p", {}, "The likeliest way:"), list];
    if (way.length > 61) parts.push(html("p", {}, `… and ${way.length - 61} states more.`));
    parts.push(html("p", {}, "then it has arrived. Wherever it strays to, the policy says how to go on; outside of the atlas it resets."));
    const met = [...travelled.firstStep.keys()].filter((place) => place !== goal);
    const whole = html("details", {}, html("summary", {}, `The whole policy: ${met.length} states may be met`));
    whole.addEventListener("toggle", () => {
      if (whole.childElementCount > 1) return;
      const steps = html("ul", { id: "whole-policy" });
      for (const place of met.slice(0, 500)) steps.append(sentence(goal, place, travelled.firstStep.get(place)));
      whole.append(steps);
      if (met.length > 500) whole.append(html("p", {}, `${met.length - 500} more are in the atlas.`));
    });
    parts.push(whole);
    return parts;
  }

  /** A lower bound of the chance to arrive within so many steps, or null: computed over the confidence region if that
   * is on the page, else by Markov's inequality: a mean of `upper` steps leaves upper / n for n steps or more. */
  function promised(goal, steps) {
    if (!content.proven || content.upper[goal] === null) return null;
    const markov = Math.max(0, 1 - content.upper[goal] / (steps + 1));
    const length = content.chanceLengths[goal];
    return length ? Math.max(markov, provenChances[chanceStarts[goal] + Math.min(steps, length - 1)] / 1000) : markov;
  }

  function chances(goal, { arrived }) {
    const last = arrived.length - 1;
    const chance = (steps) => arrived[Math.min(steps, last)];
    const input = html("input", { id: "chance-steps", type: "number", min: 0, step: 1, value: Math.ceil(2 * (content.shownSteps[goal] || 1)) });
    const output = html("output", { id: "chance", for: "chance-steps" });
    const show = () => {
      const steps = Math.max(0, Math.floor(+input.value || 0));
      const sure = promised(goal, steps);
      output.textContent = `${percent(chance(steps))} by the observed frequencies` + (sure === null ? "" : `; at least ${percent(Math.floor(1000 * sure) / 1000)} proven`);
    };
    input.addEventListener("input", show);
    show();
    const mean = arrived.reduce((sum, part) => sum + 1 - part, 0);
    const usual = arrived.findIndex((part) => part >= 0.99);
    const end = Math.max(4, usual < 0 ? last : Math.ceil(1.2 * usual));
    const x = (steps) => 40 + (steps / end) * 290, y = (part) => 120 - 105 * part;
    const curve = (part) => Array.from({ length: 101 }, (_, i) => Math.round((i * end) / 100))
      .map((steps, i) => `${i ? "L" : "M"}${x(steps).toFixed(1)} ${y(part(steps)).toFixed(1)}`).join("");
    const label = (text, left, top, anchor) => svg("text", { x: left, y: top, "text-anchor": anchor }, text);
    const chart = svg("svg", { class: "chart", viewBox: "0 0 340 150", role: "img", "aria-label": `Chance to have arrived over steps; half after ${arrived.findIndex((part) => part >= 0.5)} steps.` },
      svg("path", { class: "axis", d: "M40 15V120H330" }), label("100 %", 36, 19, "end"), label("0", 36, 124, "end"),
      label(`${end} steps`, 330, 136, "end"), label("0", 40, 136, "middle"),
      ...(promised(goal, 1) === null ? [] : [svg("path", { class: "curve promise", d: curve((steps) => promised(goal, steps)) })]),
      svg("path", { class: "curve chance", d: curve(chance) }));
    const key = html("p", { class: "key" }, html("span", { class: "line" }), " by the observed frequencies");
    if (promised(goal, 1) !== null) key.append(" ", html("span", { class: "line promise" }), " proven at least");
    const complete = arrived[last] > 1 - 1e-5;
    return [html("h4", {}, "Chance to arrive"),
      html("p", {}, html("label", { for: "chance-steps" }, "within "), input, " steps: ", output),
      chart, key,
      html("p", {}, complete ? `By the observed frequencies it takes ${mean.toFixed(2)} steps on average.` : `By the observed frequencies it has not surely arrived after ${last} steps.`)];
  }

  /** The bounds of a goal over the steps of the run, as a band and as a table. */
  function narrowing(goal) {
    const points = [];
    let start = 0;
    content.boundSteps.forEach((steps, moment) => {
      const known = content.boundKnown[moment];
      const upper = goal < known ? boundUpper[start + goal] : -1;
      if (upper >= 0) points.push({ steps, lower: boundLower[start + goal] / 1000, upper: upper / 1000 });
      start += known;
    });
    const title = html("h4", {}, "Bounds over steps");
    if (!points.length) return [title, html("p", { id: "bounds-none" }, "The log of the run holds no bounds of it.")];
    const [first, last] = [points[0], points[points.length - 1]];
    const end = Math.max(last.steps, first.steps + 1);
    const bottom = Math.floor(Math.min(...points.map(({ lower }) => lower)));
    const top = Math.ceil(Math.max(...points.map(({ upper }) => upper), bottom + 0.1) * 10) / 10;
    const logarithmic = end > 30 * first.steps && first.steps > 0; // as the other curves
    const scale = logarithmic ? Math.log : (steps) => steps;
    const x = (steps) => (40 + ((scale(steps) - scale(first.steps)) / (scale(end) - scale(first.steps))) * 290).toFixed(1);
    const y = (value) => (120 - (105 * (value - bottom)) / (top - bottom)).toFixed(1);
    // A staircase: a bound was known until the next was noted.
    const stairs = (name) => points.map((point, i) => (i ? `H${x(point.steps)}V${y(point[name])}` : `${x(point.steps)} ${y(point[name])}`)).join("");
    const back = [...points].reverse().map((point) => `V${y(point.lower)}H${x(point.steps)}`);
    const number = (value) => value.toLocaleString("en");
    const label = (text, left, height, anchor) => svg("text", { x: left, y: height, "text-anchor": anchor }, text);
    const said = `Bounds over steps: ${first.lower} to ${first.upper} after ${number(first.steps)} steps, ${last.lower} to ${last.upper} after ${number(last.steps)}. A table follows.`;
    const chart = svg("svg", { class: "chart", id: "bounds-chart", viewBox: "0 0 340 150", role: "img", "aria-label": said },
      svg("path", { class: "axis", d: "M40 15V120H330" }), label(top.toFixed(1), 36, 19, "end"), label(bottom, 36, 124, "end"),
      label(`${number(end)} steps${logarithmic ? ", logarithmic" : ""}`, 330, 136, "end"), label(number(first.steps), 40, 136, "start"),
      svg("path", { class: "band", d: `M${stairs("upper")}${back.join("")}Z` }),
      svg("path", { class: "curve bound", d: `M${stairs("upper")}` }), svg("path", { class: "curve bound", d: `M${stairs("lower")}` }));
    const rows = points.map(({ steps, lower, upper }) =>
      html("tr", {}, html("th", { scope: "row" }, number(steps)), html("td", {}, lower.toFixed(3)), html("td", {}, upper.toFixed(3))));
    const heads = ["steps", "at least", "at most"].map((text) => html("th", { scope: "col" }, text));
    return [title, chart, html("p", { class: "key" }, "expected steps to it, between what was proven at least and at most"),
      html("details", {}, html("summary", {}, "as a table"), html("table", { id: "bounds-table" },
        html("caption", {}, "Bounds over the steps of the run"), html("thead", {}, html("tr", {}, ...heads)), html("tbody", {}, ...rows)))];
  }

  function bounds(place) {
    if (!content.proven) return place < members ? `about ${content.lowerText[place]} expected steps` : "left out";
    if (place >= members) return `at least ${content.lowerText[place]} expected steps`;
    return `${content.lowerText[place]} to ${content.upperText[place]} expected steps`;
  }

  function panelOf(place) {
    const parts = [
      html("p", {}, html("span", { class: `badge ${className(place)}` }, content.proven ? statusOf(place) : "not proven")),
      html("p", { class: "steps", id: "panel-steps" }, bounds(place)), html("p", { id: "panel-reason" }, content.reasons[place])];
    if (place >= members) return { parts, travelled: null };
    parts.push(html("p", {}, `Found at step ${content.foundAt[place].toLocaleString("en")}; ${content.visits[place].toLocaleString("en")} draws in it.`));
    if (place === 0) return { parts: [...parts, html("p", {}, "RESET leads here.")], travelled: null };
    if (!hasPolicy(place)) return { parts: [...parts, html("p", {}, "Its policy is in the atlas: there was no room for it on this page.")], travelled: null };
    const travelled = journey(place);
    return { parts: [...parts, html("h4", {}, "The way"), ...routeInWords(place, travelled), ...chances(place, travelled), ...(content.proven ? narrowing(place) : [])], travelled };
  }

  function choose(place, { focusPanel = false } = {}) {
    for (const before of document.querySelectorAll(".chosen")) before.classList.remove("chosen");
    if (chosen !== null) nodes.get(chosen)?.setAttribute("aria-pressed", "false");
    chosen = place;
    layers.way.replaceChildren();
    remember();
    if (place === null) {
      byId("panel-title").textContent = "Choose a state";
      byId("panel-body").replaceChildren(html("p", {}, "No state is chosen."));
      drawNames();
      return;
    }
    const node = nodes.get(place);
    node?.classList.add("chosen");
    node?.setAttribute("aria-pressed", "true");
    const { parts, travelled } = panelOf(place);
    byId("panel-title").textContent = place < members && place > 0 ? `The way to ${labels[place]}` : labels[place];
    byId("panel-body").replaceChildren(...parts);
    if (travelled) {
      const hidden = drawWay(place, travelled);
      if (hidden) byId("panel-body").append(html("p", {}, `${hidden} states that are met more rarely have no arrow.`));
    }
    document.querySelector(`button.goal[data-place="${place}"]`)?.closest("tr").classList.add("chosen");
    if (node) rove(place);
    drawNames();
    say(`${describe(place)}. ${content.reasons[place]}`);
    if (focusPanel) byId("panel").focus();
  }

  // ---- keyboard, search, tables ---------------------------------------------------------------------------------

  let roving = 0;
  function rove(place) {
    nodes.get(roving)?.setAttribute("tabindex", -1);
    roving = place;
    nodes.get(place).setAttribute("tabindex", 0);
  }

  /** The nearest state in a direction: what is aside counts as farther. */
  function neighbour(place, dx, dy) {
    const from = spot.get(place);
    let best = null, least = Infinity;
    for (const [other, to] of spot) {
      const ahead = (to.x - from.x) * dx + (to.y - from.y) * dy;
      const aside = Math.abs((to.x - from.x) * dy) + Math.abs((to.y - from.y) * dx);
      if (ahead <= 0.1 * size || aside > 2 * ahead || nodes.get(other).classList.contains("unmet")) continue;
      if (ahead + 2 * aside < least) [best, least] = [other, ahead + 2 * aside];
    }
    return best;
  }

  function prepareKeys() {
    const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    map.addEventListener("keydown", (event) => {
      const node = event.target.closest(".node");
      if (!node) return;
      const place = +node.dataset.place;
      if (event.key === "Enter" || event.key === " ") {
        choose(place, { focusPanel: event.key === "Enter" });
        event.preventDefault();
      } else if (directions[event.key]) {
        const next = neighbour(place, ...directions[event.key]);
        if (next !== null) { rove(next); nodes.get(next).focus(); }
        event.preventDefault();
      } else if (event.key === "Home") {
        rove(0);
        nodes.get(0).focus();
        event.preventDefault();
      }
    });
    map.addEventListener("click", (event) => {
      const node = event.target.closest(".node");
      if (node) choose(+node.dataset.place);
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && chosen !== null) choose(null); });
  }

  function find(text) {
    const wanted = text.trim().toLowerCase();
    const lower = labels.map((label) => label.toLowerCase());
    const place = [(label) => label === wanted, (label) => label.startsWith(wanted), (label) => label.includes(wanted)]
      .map((matches) => lower.findIndex(matches)).find((found) => found >= 0);
    if (!wanted || place === undefined) say(`No state is called ${text}.`);
    else choose(place);
    byId("search").setAttribute("aria-invalid", String(place === undefined));
  }

  function prepareSearch() {
    byId("labels").append(...labels.slice(0, 3000).map((label) => html("option", { value: label })));
    byId("search-form").addEventListener("submit", (event) => { event.preventDefault(); find(byId("search").value); });
  }

  function prepareTables() {
    document.addEventListener("click", (event) => {
      const goal = event.target.closest("button.goal");
      if (goal) {
        choose(+goal.dataset.place, { focusPanel: true });
        byId("panel").scrollIntoView({ block: "nearest" });
      }
      const sort = event.target.closest("button.sort");
      if (sort) sortBy(sort.closest("th"));
    });
  }

  function sortBy(heading) {
    const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex;
    const descending = heading.getAttribute("aria-sort") === "ascending";
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => a[0].localeCompare(b[0], "en", { numeric: true });
    const numeric = (a, b) => +a[0] - +b[0];
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(rows.every(([value]) => value !== "" && Number.isFinite(+value)) ? numeric : compare);
    if (descending) rows.reverse();
    body.append(...rows.map(([, row]) => row));
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    say(`Sorted by ${heading.textContent}, ${descending ? "descending" : "ascending"}.`);
  }

  // ---- what is shown is kept in the address, so that it can be linked to and outlives a refresh -------------------

  let restoring = true;
  function remember() {
    if (restoring) return;
    const kept = new URLSearchParams();
    if (chosen !== null) kept.set("state", labels[chosen]);
    if (byId("colour").value !== "steps") kept.set("colour", byId("colour").value);
    if (radiusSlider.value !== radiusSlider.max) kept.set("radius", radiusSlider.value);
    history.replaceState(null, "", kept.size ? `#${kept}` : "#");
  }

  function restore() {
    const kept = new URLSearchParams(location.hash.slice(1));
    if (measures[kept.get("colour")] || kept.get("colour") === "status") byId("colour").value = kept.get("colour");
    if (kept.has("radius")) radiusSlider.value = kept.get("radius");
    paint();
    filter();
    const place = labels.indexOf(kept.get("state"));
    if (place >= 0) choose(place);
    restoring = false;
  }

  // ---- a run that is watched ------------------------------------------------------------------------------------

  function watch(live) {
    const focused = sessionStorage.getItem("focused");
    sessionStorage.removeItem("focused");
    if (focused) byId(focused)?.focus();
    const message = document.querySelector(".live strong");
    const timer = setInterval(async () => {
      if (byId("pause").checked || playing) return;
      try {
        const news = await (await fetch("news", { cache: "no-store" })).json();
        message.textContent = news.message;
        if (news.version === live.version) return;
        sessionStorage.setItem("focused", document.activeElement?.id ?? "");
        location.reload();
      } catch {
        clearInterval(timer);
        message.textContent = "The watcher has ended; this is the last that it saw.";
        say(message.textContent);
      }
    }, 2000);
  }

  prepareSliders();
  drawGround();
  drawNodes();
  prepareZoom();
  map.setAttribute("viewBox", `0 0 ${WIDTH} ${layout.height}`);
  restore();
  prepareKeys();
  prepareSearch();
  prepareTables();
  byId("colour").addEventListener("change", () => { paint(); filter(); remember(); });
  radiusSlider.addEventListener("input", () => { filter(); remember(); });
  replaySlider.addEventListener("input", filter);
  byId("play").addEventListener("click", play);
  if (content.live) watch(content.live);
  document.body.dataset.ready = "true";
})();

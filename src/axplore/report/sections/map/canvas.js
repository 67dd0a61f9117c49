"use strict";
// The drawing of the map and the part of it that is in view. A grid or a graph draws itself on the layers given here.
const canvas = (() => {
  const { byId, svg } = elements;
  const { content } = atlas;
  const isGrid = content.layout.kind === "grid";
  const map = byId("map");
  const layers = Object.fromEntries(["ground", "tree", "nodes", "walls", "way", "names"].map((name) => [name, svg("g", { class: `layer-${name}` })]));
  map.append(...Object.values(layers));
  map.classList.add(isGrid ? "grid-map" : "graph-map");
  /** Where each state that is drawn has its centre and how large it is; and its element. */
  const spots = new Map(), nodes = new Map();
  const listeners = [];
  /** The least size of a name on the screen before the map is shown in part only, in pixels; and how near one gets. */
  const LEAST_NAME = 7, NEAREST = 40;
  let whole = { x: 0, y: 0, width: 1, height: 1 };
  const view = { ...whole };

  /** Calls a listener after every change of what is drawn. */
  const onRedraw = (listener) => { listeners.push(listener); };
  const redrawn = () => { for (const listener of listeners) listener(); };

  const showView = () => map.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);

  /** Sets the size of the map. A graph too large for its names to be read is shown from the initial state on. */
  function setSize(width, height, isCut) {
    whole = { x: 0, y: 0, width, height };
    const shape = frame();
    if (isCut) Object.assign(view, partAround(spots.get(0), width, height, shape));
    else Object.assign(view, whole);
    showView();
  }

  /** Where a part of some size begins that has a middle, and does not leave the whole. */
  const within = (middle, size, all) => Math.max(0, Math.min(all - size, middle - size / 2));

  /** The size that the map may have on the screen. */
  function frame() {
    return { width: map.parentElement.clientWidth || 1000, height: Math.max(320, 0.74 * innerHeight) };
  }

  function partAround({ x, y }, width, height, shape) {
    const scale = Math.max(Math.min(shape.width / width, shape.height / height), LEAST_NAME / 13);
    const part = { width: Math.min(width, shape.width / scale), height: Math.min(height, shape.height / scale) };
    return { x: within(x, part.width, width), y: within(y, part.height, height), ...part };
  }

  function zoom(factor, x = view.x + view.width / 2, y = view.y + view.height / 2) {
    const wanted = Math.max(whole.width / NEAREST, Math.min(whole.width, view.width * factor)), real = wanted / view.width;
    Object.assign(view, { x: x - (x - view.x) * real, y: y - (y - view.y) * real, width: wanted, height: view.height * real });
    if (wanted === whole.width) Object.assign(view, whole);
    showView();
    redrawn();
  }

  /** Moves the view by a distance on the screen. */
  function pan(dx, dy) {
    const scale = view.width / map.clientWidth;
    view.x -= dx * scale;
    view.y -= dy * scale;
    showView();
  }

  /** Moves the view so that a state is in it. */
  function showSpot(index) {
    const spot = spots.get(index);
    if (!spot || isWhole()) return;
    const isIn = spot.x > view.x && spot.x < view.x + view.width && spot.y > view.y && spot.y < view.y + view.height;
    if (isIn) return;
    Object.assign(view, { x: within(spot.x, view.width, whole.width), y: within(spot.y, view.height, whole.height) });
    showView();
  }

  const isWhole = () => view.width >= whole.width && view.height >= whole.height;
  const pixel = () => view.width / (map.clientWidth || whole.width);

  /** What a state shows besides its name: a cross if it is set aside, a question mark if it is open and outside. */
  function marks(status, half, member) {
    const arm = 0.45 * half, parts = [];
    if (status === "set aside") parts.push(svg("path", { class: "mark", d: `M${-arm} ${-arm}L${arm} ${arm}M${-arm} ${arm}L${arm} ${-arm}` }));
    if (status === "open" && !member && half > 5) {
      parts.push(svg("text", { class: "value", y: 0.4 * half, "font-size": 1.1 * half, fill: "currentColor" }, "?"));
    }
    return parts;
  }

  /** The element of a state, with the outline that it is given. */
  function node(index, { x, y }, outline, inner, ...parts) {
    const kind = `node ${atlas.classOf(index)}${atlas.isMember(index) ? "" : " frontier"}${index === 0 ? " initial" : ""}`;
    const element = svg("g", { class: kind, id: `state-${index}`, "data-index": index, role: "button", tabindex: index === 0 ? 0 : -1,
      "aria-pressed": "false", "aria-label": atlas.describe(index), transform: `translate(${x} ${y})` },
    svg("title", {}, atlas.describe(index)), svg("path", { class: "shape", d: outline }), ...parts);
    if (atlas.onlyResets(index)) element.append(svg("path", { class: "terminal", d: inner }));
    nodes.set(index, element);
    layers.nodes.append(element);
    return element;
  }

  return { map, layers, spots, nodes, isGrid, view, frame, setSize, onRedraw, redrawn, zoom, pan, showSpot, isWhole, pixel, marks, node };
})();

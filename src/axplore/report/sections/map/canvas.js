"use strict";
// The drawing of the map: rings or cells, a node for each state, as many names as fit, and the part that is in view.
const canvas = (() => {
  const { byId, svg, short } = elements;
  const { content, labels, isMember } = atlas;
  const { layout } = content;
  const isGrid = layout.kind === "grid", size = layout.size, width = layout.width;
  const map = byId("map");
  const layers = { ground: svg("g"), tree: svg("g"), nodes: svg("g"), way: svg("g"), names: svg("g") };
  map.append(...Object.values(layers));
  map.classList.toggle("grid-map", isGrid);
  const spots = new Map(layout.drawn.map((index, i) => [index, { x: layout.x[i], y: layout.y[i] }]));
  const nodes = new Map();
  /** The size of names on narrow screens, and that below which names of cells are left out, in pixels. */
  const NAME_PIXELS = 11, LEAST_PIXELS = 5;
  const view = { x: 0, y: 0, width, height: layout.height };

  function drawRings() {
    const middle = layout.height / 2;
    for (const [steps, radius] of layout.rings) {
      const limit = steps === content.radius;
      layers.ground.append(svg("circle", { class: limit ? "ring limit" : "ring", cx: width / 2, cy: middle, r: radius }));
      if (radius + 17 < middle) {
        layers.ground.append(svg("text", { class: "ring-label", x: width / 2, y: middle + radius + 17, "font-size": 15 },
          `${+steps.toFixed(2)}${limit ? " steps: the radius" : ""}`));
      }
    }
  }

  function drawEmptyCells() {
    const taken = new Set(layout.drawn.map((_, i) => `${layout.x[i]} ${layout.y[i]}`));
    const [rows, columns] = layout.cells;
    const left = width / 2 - columns * size;
    const unseen = "never seen, or not a state." + (content.unseenLower === null ? "" :
      ` States never seen take at least ${content.unseenLower} expected steps.`);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const x = left + 2 * column * size, y = layout.margin + 2 * row * size;
        if (taken.has(`${+(x + size).toFixed(2)} ${+(y + size).toFixed(2)}`)) continue;
        layers.ground.append(svg("rect", { class: "empty", x: x + 1, y: y + 1, width: 2 * size - 2, height: 2 * size - 2 },
          svg("title", {}, unseen)));
      }
    }
  }

  /** The tree of short ways around the initial state: faint lines, or in a grid bridges between neighbours. */
  function drawTree() {
    for (const [index, to] of spots) {
      const from = spots.get(content.waysIn[index]);
      if (index === 0 || !from || (isGrid && Math.hypot(to.x - from.x, to.y - from.y) > 2.01 * size)) continue;
      layers.tree.append(svg("line", { class: isMember(index) ? "branch" : "branch frontier", "data-index": index,
        x1: from.x, y1: from.y, x2: to.x, y2: to.y }));
    }
    if (isGrid) layers.tree.style.strokeWidth = `${0.8 * size}px`;
  }

  /** The outline of a state around (0, 0): circles are certified, squares set aside, diamonds open; cells in a grid. */
  function outline(status, half) {
    if (isGrid) return `M${-half} ${-half}H${half}V${half}H${-half}Z`;
    if (status === "certified") return `M${-half} 0A${half} ${half} 0 1 1 ${half} 0A${half} ${half} 0 1 1 ${-half} 0Z`;
    if (status === "open") return `M0 ${-1.25 * half}L${1.25 * half} 0L0 ${1.25 * half}L${-1.25 * half} 0Z`;
    const side = 0.8 * half;
    return `M${-side} ${-side}H${side}V${side}H${-side}Z`;
  }

  function symbol(status, half, member) {
    const parts = [svg("path", { class: "shape", d: outline(status, half) })];
    const arm = (isGrid ? 0.45 : 0.55) * half;
    if (status === "set aside") parts.push(svg("path", { class: "mark", d: `M${-arm} ${-arm}L${arm} ${arm}M${-arm} ${arm}L${arm} ${-arm}` }));
    if (status === "open" && !member && half > 5) {
      parts.push(svg("text", { class: "value", y: 0.4 * half, "font-size": 1.1 * half, fill: "currentColor" }, "?"));
    }
    return parts;
  }

  function drawNode(index) {
    const { x, y } = spots.get(index), status = atlas.statusOf(index);
    const half = isGrid ? size - Math.max(0.5, size * 0.09) : size;
    const node = svg("g", {
      class: `node ${atlas.classOf(index)}${isMember(index) ? "" : " frontier"}${index === 0 ? " initial" : ""}`,
      id: `state-${index}`, "data-index": index, role: "button", tabindex: index === 0 ? 0 : -1, "aria-pressed": "false",
      transform: `translate(${x} ${y})`,
    }, svg("title", {}, atlas.describe(index)), ...symbol(status, half, isMember(index)));
    if (atlas.onlyResets(index)) node.append(svg("path", { class: "terminal", d: outline(status, (isGrid ? 0.93 : 0.82) * half) }));
    nodes.set(index, node);
    layers.nodes.append(node);
  }

  // ---- clusters: states behind one and the same state, which a click opens ---------------------------------------

  const clusters = new Map();

  function drawClusters() {
    for (const index of layout.drawn) {
      const anchor = content.clusterOf[index];
      if (anchor >= 0) clusters.set(anchor, [...(clusters.get(anchor) ?? []), index]);
    }
    for (const [anchor, indices] of clusters) {
      const { x, y } = spots.get(indices[indices.length >> 1]), from = spots.get(anchor), half = Math.max(1.9 * size, 13);
      const said = `${indices.length} states behind ${labels[anchor]}; a click shows them`;
      const symbol = svg("g", { class: "cluster", role: "button", tabindex: 0, "aria-label": said, transform: `translate(${x} ${y})` },
        svg("title", {}, said), svg("rect", { x: -half, y: -0.8 * half, width: 2 * half, height: 1.6 * half, rx: 0.5 * half }),
        svg("text", { class: "value", y: 0.35 * half, "font-size": 0.9 * half }, `+${indices.length}`));
      const line = svg("line", { class: "branch frontier", x1: from.x, y1: from.y, x2: x, y2: y });
      symbol.addEventListener("click", () => openCluster(anchor));
      symbol.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        openCluster(anchor);
        nodes.get(indices[0]).focus();
      });
      clusters.set(anchor, { indices, parts: [symbol, line] });
      layers.tree.prepend(line);
      layers.nodes.append(symbol);
      setHidden(indices, true);
    }
  }

  function setHidden(indices, isHidden) {
    for (const index of indices) {
      nodes.get(index).classList.toggle("clustered", isHidden);
      layers.tree.querySelector(`[data-index="${index}"]`)?.classList.toggle("clustered", isHidden);
    }
  }

  /** Shows the states of a cluster one by one; does nothing if it is open, or there is none. */
  function openCluster(anchor) {
    const cluster = clusters.get(anchor);
    if (!cluster) return;
    clusters.delete(anchor);
    cluster.parts.forEach((part) => part.remove());
    setHidden(cluster.indices, false);
    drawNames();
  }

  function drawNames() {
    layers.names.replaceChildren();
    const visible = layout.drawn.filter((index) => {
      const { x, y } = spots.get(index);
      return x >= view.x && x <= view.x + view.width && y >= view.y && y <= view.y + view.height &&
        !nodes.get(index).matches(".unmet, .clustered");
    });
    if (visible.length > content.limits.names) return;
    const pixel = view.width / (map.clientWidth || width);
    if (isGrid) visible.forEach((index) => nameCell(index, pixel));
    else nameNodes(visible, Math.max((16 * view.width) / width, NAME_PIXELS * pixel));
  }

  function nameCell(index, pixel) {
    const { x, y } = spots.get(index), node = nodes.get(index);
    const ink = isMember(index) && !node.classList.contains("pending") ? node.ink : "var(--soft)";
    const text = (words, left, top, font, anchor) => {
      const element = svg("text", { class: "name", x: left, y: top, "font-size": font }, words);
      Object.assign(element.style, { fill: ink, textAnchor: anchor, opacity: node.classList.contains("beyond") ? 0.35 : 1 });
      layers.names.append(element);
    };
    const name = short(labels[index], 10);
    const font = Math.min(Math.max(0.36 * size, NAME_PIXELS * pixel), (3 * size) / name.length, 0.55 * size);
    if (font >= LEAST_PIXELS * pixel) text(name, x - 0.85 * size, y - 0.85 * size + 0.8 * font, font, "start");
    if (isMember(index) && selection.chosen === null) text(content.shownSteps[index].toFixed(1), x, y + 0.35 * size, 0.62 * size, "middle");
  }

  /** Names beside nodes, the chosen one first, wherever they cover neither a node nor another name. */
  function nameNodes(visible, font) {
    const boxes = visible.map((index) => {
      const { x, y } = spots.get(index);
      return [x - 0.7 * size, y - 0.7 * size, x + 0.7 * size, y + 0.7 * size];
    });
    const fits = (x, y, text) => {
      const half = 0.31 * font * text.length;
      const box = [x - half, y - font, x + half, y + 0.25 * font];
      if (box[0] < view.x || box[2] > view.x + view.width) return false;
      if (boxes.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) return false;
      boxes.push(box);
      layers.names.append(svg("text", { class: "name", x, y, "font-size": font }, text));
      return true;
    };
    const { chosen } = selection;
    for (const index of new Set(visible.includes(chosen) ? [chosen, ...visible] : visible)) {
      const { x, y } = spots.get(index), text = short(labels[index]);
      const aside = 1.2 * size + 0.31 * font * text.length;
      [[x, y - 1.25 * size - 2], [x, y + 1.25 * size + font], [x + aside, y + 0.35 * font], [x - aside, y + 0.35 * font]]
        .some(([left, top]) => fits(left, top, text));
    }
  }

  const showView = () => map.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);

  function zoom(factor, x = view.x + view.width / 2, y = view.y + view.height / 2) {
    const wanted = Math.max(width / 40, Math.min(width, view.width * factor)), real = wanted / view.width;
    Object.assign(view, { x: x - (x - view.x) * real, y: y - (y - view.y) * real, width: wanted, height: view.height * real });
    if (wanted === width) Object.assign(view, { x: 0, y: 0, height: layout.height });
    showView();
    drawNames();
  }

  /** Moves the view by a distance on the screen. */
  function pan(dx, dy) {
    const scale = view.width / map.clientWidth;
    view.x -= dx * scale;
    view.y -= dy * scale;
    showView();
  }

  drawRings();
  if (isGrid) drawEmptyCells();
  drawTree();
  layout.drawn.forEach(drawNode);
  drawClusters();
  showView();
  addEventListener("resize", () => drawNames());

  return { map, layers, spots, nodes, isGrid, size, symbol, drawNames, openCluster, zoom, pan, isWhole: () => view.width === width };
})();

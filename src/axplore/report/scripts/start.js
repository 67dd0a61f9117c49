"use strict";
// Runs last: shows what the address asks for, and polls for updates of a run that is watched.
atlas.ready.then(() => {
  selection.restore();
  const farthest = farthestShown();
  if (selection.chosen === null && farthest !== null) selection.suggest(farthest);
  if (atlas.content.live) watch(atlas.content.live);
  document.body.dataset.ready = "true";

  /** What is shown at first: the farthest certified state of those that the map shows from the start. */
  function farthestShown() {
    const { farthest, shownSteps, members } = atlas.content;
    if (farthest === null || canvas.nodes.has(farthest)) return farthest;
    const shown = [...canvas.nodes.keys()].filter((index) => index > 0 && index < members && atlas.statusOf(index) === atlas.statusOf(farthest));
    return shown.length ? shown.reduce((a, b) => (shownSteps[b] > shownSteps[a] ? b : a)) : null;
  }

  function watch(live) {
    const focused = sessionStorage.getItem("focused");
    sessionStorage.removeItem("focused");
    if (focused) elements.byId(focused)?.focus();
    show(live);
    const timer = setInterval(async () => {
      if (elements.byId("pause").checked || elements.byId("play")?.textContent === "pause") return;
      try {
        const news = await (await fetch("news", { cache: "no-store" })).json();
        show(news);
        if (news.version === live.version) return;
        sessionStorage.setItem("focused", document.activeElement?.id ?? "");
        location.reload();
      } catch {
        clearInterval(timer);
        elements.byId("live-message").textContent = "The watcher has ended; this is its last update.";
        elements.say("The watcher has ended; this is its last update.");
      }
    }, atlas.content.limits.newsMilliseconds);
  }

  /** Shows how far along the run is: the bar, the message and the curves. */
  function show({ message, share, curves }) {
    elements.byId("live-message").textContent = message;
    const bar = elements.byId("live-bar");
    if (share === null || share === undefined) bar.removeAttribute("value");
    else bar.value = share;
    if (curves?.steps.length > 1) drawCurves(curves);
  }

  function drawCurves({ steps, known, met }) {
    const { svg, number } = elements, last = steps[steps.length - 1] || 1, top = Math.max(...met, 1);
    const x = (value) => (44 + (value / last) * 586).toFixed(1), y = (value) => (100 - (value / top) * 88).toFixed(1);
    const curve = (values) => values.map((value, i) => `${i ? `H${x(steps[i])}V` : `M${x(steps[i])} `}${y(value)}`).join("");
    const text = (words, left, height, anchor) => svg("text", { x: left, y: height, "text-anchor": anchor }, words);
    elements.byId("live-chart").replaceChildren(svg("path", { class: "axis", d: "M44 12V100H630" }), text(number(top), 40, 16, "end"), text("0", 40, 104, "end"),
      text(`${number(last)} steps`, 630, 116, "end"), svg("path", { class: "curve met", d: curve(met) }), svg("path", { class: "curve known", d: curve(known) }));
  }
});

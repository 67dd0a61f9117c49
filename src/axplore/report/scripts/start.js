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
    const message = document.querySelector(".live strong");
    const timer = setInterval(async () => {
      if (elements.byId("pause").checked || elements.byId("play")?.textContent === "pause") return;
      try {
        const news = await (await fetch("news", { cache: "no-store" })).json();
        message.textContent = news.message;
        if (news.version === live.version) return;
        sessionStorage.setItem("focused", document.activeElement?.id ?? "");
        location.reload();
      } catch {
        clearInterval(timer);
        message.textContent = "The watcher has ended; this is its last update.";
        elements.say(message.textContent);
      }
    }, atlas.content.limits.newsMilliseconds);
  }
});

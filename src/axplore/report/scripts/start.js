"use strict";
// Runs last: shows what the address asks for, and polls for updates of a run that is watched.
atlas.ready.then(() => {
  selection.restore();
  if (selection.chosen === null && atlas.content.farthest !== null) selection.suggest(atlas.content.farthest);
  if (atlas.content.live) watch(atlas.content.live);
  document.body.dataset.ready = "true";

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

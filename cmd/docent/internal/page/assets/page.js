// Follows changes: the server tells the version of what it has read, and the page loads itself again
// and takes over what differs. Without this script the page shows what was there when it was loaded.
"use strict";
(() => {
  const status = document.getElementById("link");
  const form = document.getElementById("filter");
  const content = () => document.getElementById("content");
  document.documentElement.classList.add("scripted");

  // age is the function of the same name in views.go.
  function age(ms) {
    const s = Math.max(0, Math.floor(ms / 1000)), f = Math.floor;
    if (s < 60) return `${s}s`;
    if (s < 3600) return `${f(s / 60)}m ${s % 60}s`;
    if (s < 86400) return `${f(s / 3600)}h ${f(s % 3600 / 60)}m`;
    return `${f(s / 86400)}d ${f(s % 86400 / 3600)}h`;
  }

  let clock = 0; // the server's time when this page was loaded, as far as performance.now() goes
  function setClock() {
    if (content()) clock = Number(content().dataset.now) - performance.now();
  }
  function showAges() {
    for (const time of document.querySelectorAll("time[data-since]")) {
      const text = age(clock + performance.now() - Number(time.dataset.since));
      if (time.textContent !== text) time.textContent = text;
    }
  }

  // take makes an element equal to another one. Rows with a key stay the same elements.
  function take(now, next) {
    if (now.isEqualNode(next)) return;
    if (now.nodeType !== next.nodeType || now.nodeName !== next.nodeName) {
      now.replaceWith(document.importNode(next, true));
      return;
    }
    if (now.nodeType !== Node.ELEMENT_NODE) {
      now.nodeValue = next.nodeValue;
      return;
    }
    for (const a of [...now.attributes]) if (!next.hasAttribute(a.name)) now.removeAttribute(a.name);
    for (const a of next.attributes) if (now.getAttribute(a.name) !== a.value) now.setAttribute(a.name, a.value);
    const keyed = new Map();
    for (const e of now.children) if (e.dataset.key !== undefined) keyed.set(e.dataset.key, e);
    let at = now.firstChild;
    for (const want of [...next.childNodes]) {
      const key = want.nodeType === Node.ELEMENT_NODE ? want.dataset.key : undefined;
      const old = key === undefined ? at : keyed.get(key);
      if (!old || key === undefined && old.nodeType === Node.ELEMENT_NODE && old.dataset.key !== undefined) {
        now.insertBefore(document.importNode(want, true), at);
        continue;
      }
      if (old !== at) now.insertBefore(old, at); else at = at.nextSibling;
      take(old, want);
    }
    while (at) {
      const rest = at.nextSibling;
      at.remove();
      at = rest;
    }
  }

  let loading = false, again = false;
  async function load() {
    if (loading) { again = true; return; }
    loading = true;
    try {
      do {
        again = false;
        const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
        if (!(answer.headers.get("Content-Type") || "").startsWith("text/html")) throw new Error(answer.statusText);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const focus = document.activeElement;
        for (const next of page.querySelectorAll("[data-live]")) {
          const now = document.getElementById(next.id);
          if (now) take(now, next);
        }
        if (focus && focus !== document.activeElement && focus.isConnected) focus.focus({ preventScroll: true });
        setClock();
        showAges();
      } while (again);
    } catch (error) {
      say("The page cannot be loaded: " + error.message, true);
    } finally {
      loading = false;
    }
  }

  function say(text, off) {
    if (status.textContent !== text) status.textContent = text;
    status.classList.toggle("off", !!off);
  }

  let stream = null;
  function follow() {
    if (stream || document.hidden || !content()) return;
    stream = new EventSource("events");
    stream.onopen = () => say("Live");
    stream.onmessage = (event) => { if (event.data !== content().dataset.version) load(); };
    stream.onerror = () => {
      say("Not connected. Trying again …", true);
      if (stream.readyState === EventSource.CLOSED) { // the server has refused
        leave();
        setTimeout(follow, 5000);
      }
    };
  }
  function leave() {
    if (stream) stream.close();
    stream = null;
  }
  // A hidden page follows nothing: it costs nothing, and browsers have few connections for a server.
  document.addEventListener("visibilitychange", () => { if (document.hidden) { leave(); say("Paused"); } else follow(); });
  window.addEventListener("pagehide", leave);
  window.addEventListener("pageshow", follow);

  if (form && content()) {
    let timer = 0;
    const apply = () => {
      const query = new URLSearchParams(new FormData(form));
      for (const [name, value] of [...query]) if (value === "") query.delete(name);
      history.replaceState(null, "", "?" + query);
      load();
    };
    form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(apply, 200); });
    form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); apply(); });
  }

  setClock();
  setInterval(showAges, 1000);
  if (!document.hidden) follow();
})();

"use strict";
(() => {
  // Colours: as the system has them, light, or dark.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const remembered = () => { try { return localStorage.getItem("progap-theme"); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem("progap-theme", theme); } catch { /* not kept then */ } };
  const apply = (theme) => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = `Colours: ${theme}`;
  };
  let theme = themes.includes(remembered()) ? remembered() : "auto";
  apply(theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    remember(theme);
    apply(theme);
  });

  // Exact values: at the pointer, and at the spot that the keys lead to.
  const tip = document.getElementById("tip");
  let shown = null;
  const hide = () => {
    if (shown) shown.classList.remove("on");
    shown = null;
    tip.hidden = true;
  };
  const show = (spot) => {
    if (spot === shown) return;
    hide();
    shown = spot;
    spot.classList.add("on");
    tip.textContent = spot.getAttribute("aria-label");
    tip.hidden = false;
    const box = spot.getBoundingClientRect();
    const left = box.left + box.width / 2 - tip.offsetWidth / 2;
    const top = box.top - tip.offsetHeight - 6;
    const room = root.clientWidth - tip.offsetWidth - 6;
    tip.style.left = `${Math.max(6, Math.min(left, room)) + scrollX}px`;
    tip.style.top = `${(top < 4 ? box.bottom + 6 : top) + scrollY}px`;
  };
  const centre = (spot) => {
    const box = spot.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const nearest = (spots, x, y) => {
    let best = null, distance = Infinity;
    for (const spot of spots) {
      const [sx, sy] = centre(spot);
      const d = Math.hypot(sx - x, sy - y);
      if (d < distance) [best, distance] = [spot, d];
    }
    return [best, distance];
  };
  for (const svg of document.querySelectorAll("figure svg")) {
    const spots = [...svg.querySelectorAll(".spot")];
    if (!spots.length) continue;
    const point = (event) => {
      const [spot, distance] = nearest(spots, event.clientX, event.clientY);
      if (distance < 36) show(spot); else hide();
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("focusin", (event) => show(event.target));
    svg.addEventListener("focusout", hide);
    svg.addEventListener("keydown", (event) => {
      const here = event.target;
      const lane = spots.filter((spot) => spot.dataset.lane === here.dataset.lane);
      const lanes = [...new Set(spots.map((spot) => spot.dataset.lane))];
      const at = lane.indexOf(here);
      const beside = (step) => {
        const name = lanes[lanes.indexOf(here.dataset.lane) + step];
        const other = spots.filter((spot) => spot.dataset.lane === name);
        return other.length ? nearest(other, centre(here)[0], centre(other[0])[1])[0] : null;
      };
      const next = {
        ArrowRight: () => lane[at + 1], ArrowLeft: () => lane[at - 1],
        Home: () => lane[0], End: () => lane[lane.length - 1],
        ArrowDown: () => beside(1), ArrowUp: () => beside(-1),
      }[event.key];
      if (event.key === "Escape") hide();
      if (!next) return;
      event.preventDefault();
      const spot = next();
      if (!spot) return;
      here.tabIndex = -1;
      spot.tabIndex = 0;
      spot.focus();
    });
  }
})();

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

  // Exact values: at the pointer, and at the tooltip that the keys lead to.
  const tip = document.getElementById("tip");
  let shown = null;
  const hide = () => {
    if (shown) shown.classList.remove("on");
    shown = null;
    tip.hidden = true;
  };
  const show = (tooltip) => {
    if (tooltip === shown) return;
    hide();
    shown = tooltip;
    tooltip.classList.add("on");
    tip.textContent = tooltip.getAttribute("aria-label");
    tip.hidden = false;
    const box = tooltip.getBoundingClientRect();
    const left = box.left + box.width / 2 - tip.offsetWidth / 2;
    const top = box.top - tip.offsetHeight - 6;
    const room = root.clientWidth - tip.offsetWidth - 6;
    tip.style.left = `${Math.max(6, Math.min(left, room)) + scrollX}px`;
    tip.style.top = `${(top < 4 ? box.bottom + 6 : top) + scrollY}px`;
  };
  const centre = (tooltip) => {
    const box = tooltip.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const nearest = (tooltips, x, y) => {
    let best = null, distance = Infinity;
    for (const tooltip of tooltips) {
      const [sx, sy] = centre(tooltip);
      const d = Math.hypot(sx - x, sy - y);
      if (d < distance) [best, distance] = [tooltip, d];
    }
    return [best, distance];
  };
  for (const svg of document.querySelectorAll("figure svg")) {
    const tooltips = [...svg.querySelectorAll(".tooltip")];
    if (!tooltips.length) continue;
    const point = (event) => {
      const [tooltip, distance] = nearest(tooltips, event.clientX, event.clientY);
      if (distance < 36) show(tooltip); else hide();
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("focusin", (event) => show(event.target));
    svg.addEventListener("focusout", hide);
    svg.addEventListener("keydown", (event) => {
      const here = event.target;
      const lane = tooltips.filter((tooltip) => tooltip.dataset.lane === here.dataset.lane);
      const lanes = [...new Set(tooltips.map((tooltip) => tooltip.dataset.lane))];
      const at = lane.indexOf(here);
      const beside = (step) => {
        const name = lanes[lanes.indexOf(here.dataset.lane) + step];
        const other = tooltips.filter((tooltip) => tooltip.dataset.lane === name);
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
      const tooltip = next();
      if (!tooltip) return;
      here.tabIndex = -1;
      tooltip.tabIndex = 0;
      tooltip.focus();
    });
  }
})();

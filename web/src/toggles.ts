/** The bar's buttons, each of which is on or off: full screen, the windows' own size, the on-screen keyboard. */

import { element } from "./board.js";
import type { Hands } from "./hands.js";

/** Chromium can give a page in full screen the keys that it otherwise keeps. */
interface Locking {
  readonly keyboard?: { lock(): Promise<void>; unlock(): void };
}

/** Makes them work. */
export function toggles(hands: Hands | undefined): void {
  const root = document.documentElement;
  const full = element("full");
  full.hidden = !document.fullscreenEnabled;
  full.addEventListener("click", () => toggleFull(root, hands !== undefined).catch(() => undefined));
  document.addEventListener("fullscreenchange", () => press(full, document.fullscreenElement !== null));
  const size = element("size");
  size.addEventListener("click", () => {
    press(size, root.classList.toggle("whole"));
    hands?.focus();
  });
  const keys = element("keys");
  keys.hidden = hands === undefined || !matchMedia("(any-pointer: coarse)").matches;
  keys.addEventListener("click", () => hands && press(keys, hands.field.toggleKeyboard()));
}

async function toggleFull(root: HTMLElement, locks: boolean): Promise<void> {
  const { keyboard } = navigator as Locking;
  if (document.fullscreenElement !== null) {
    keyboard?.unlock();
    return document.exitFullscreen();
  }
  await root.requestFullscreen({ navigationUI: "hide" });
  if (locks) {
    // Escape, held for a while, still leaves.
    await keyboard?.lock();
  }
}

/** Says that it is on, or off. */
export function press(button: HTMLElement, isPressed: boolean): void {
  button.setAttribute("aria-pressed", `${isPressed}`);
}

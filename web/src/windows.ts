/**
 * The windows of a session on the page.
 *
 * A view has them beside each other. A display has one tab in front, with its dialogs above, and says which window has
 * the focus. Invariant: no input goes to a window that is not seen.
 */

import { Figure } from "./figure.js";
import type { Ground, Spot } from "./input/pointer.js";
import type { Point } from "./input/touch.js";
import { Stack } from "./stack.js";
import type { Look } from "./talk.js";

/** A window without a parent, with its dialogs. */
export interface Tab {
  readonly key: string;
  readonly title: string;
  readonly isFront: boolean;
}

/** Who hears of windows. */
export interface Listener {
  /** Tabs have changed. */
  tabs(tabs: readonly Tab[]): void;
  /** A window has the focus from now on. */
  focus(key: string): void;
  /** The window that has the focus is called so from now on; nothing where none has it. */
  title(title: string): void;
}

/** See the module. */
export class Windows implements Ground {
  readonly #element: HTMLElement;
  readonly #isControl: boolean;
  readonly #listener: Listener;
  readonly #figures = new Map<string, Figure>();
  readonly #stack = new Stack();
  #focus: string | undefined;
  #title = "";

  constructor(element: HTMLElement, isControl: boolean, listener: Listener) {
    this.#element = element;
    this.#isControl = isControl;
    this.#listener = listener;
  }

  /** Shows how a window looks; gives its canvas if it is new. */
  set(key: string, look: Look): OffscreenCanvas | undefined {
    const old = this.#figures.get(key);
    const figure = old ?? new Figure(look);
    figure.setLook(look);
    this.#stack.set(key, look.parent);
    if (old === undefined) {
      figure.element.dataset.key = key;
      this.#figures.set(key, figure);
      this.#element.append(figure.element);
    }
    this.#arrange();
    return old === undefined ? figure.takeCanvas() : undefined;
  }

  remove(key: string): void {
    this.#figures.get(key)?.element.remove();
    this.#figures.delete(key);
    this.#stack.remove(key);
    this.#arrange();
  }

  clear(): void {
    for (const key of [...this.#figures.keys()]) {
      this.remove(key);
    }
  }

  get isEmpty(): boolean {
    return this.#figures.size === 0;
  }

  /** Brings what lies above in a tab to the front. */
  raise(tab: string): void {
    this.pressed(this.topOf(tab));
  }

  /** The window that who closes a tab sees there. */
  topOf(tab: string): string {
    return this.#stack.top(tab);
  }

  find(at: Point, held: string | undefined): Spot | undefined {
    const key = held ?? document.elementFromPoint(at.x, at.y)?.closest("figure")?.dataset.key ?? "";
    const figure = this.#figures.get(key);
    return figure && { key, ...figure.place(at) };
  }

  pressed(key: string): void {
    this.#stack.raise(key);
    this.#arrange();
  }

  #arrange(): void {
    if (!this.#isControl) {
      return;
    }
    const { front, focus } = this.#stack;
    for (const [key, { element, look }] of this.#figures) {
      element.hidden = this.#stack.tabOf(key) !== front;
      element.style.zIndex = `${this.#stack.height(key)}`;
      element.classList.toggle("dialog", key !== front && look.parent !== undefined);
      element.classList.toggle("dim", key !== focus);
    }
    const tabs = this.#stack.tabs.map((key) => {
      return { key, title: this.#figures.get(key)?.title ?? "", isFront: key === front };
    });
    this.#listener.tabs(tabs);
    const title = this.#figures.get(focus ?? "")?.title ?? "";
    if (title !== this.#title) {
      this.#title = title;
      this.#listener.title(title);
    }
    if (focus !== this.#focus) {
      this.#focus = focus;
      if (focus !== undefined) {
        this.#listener.focus(focus);
      }
    }
  }
}

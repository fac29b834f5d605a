/** The bar's tabs: one for each window without a parent, with a button that closes it. */

import type { Tab } from "./windows.js";

/** What is done with a tab. */
export interface Acts {
  raise(key: string): void;
  close(key: string): void;
}

/** See the module. */
export class Tabs {
  readonly #element: HTMLElement;
  readonly #acts: Acts;
  readonly #shown = new Map<string, { item: HTMLElement; show: HTMLElement; close: HTMLElement }>();

  constructor(element: HTMLElement, acts: Acts) {
    [this.#element, this.#acts] = [element, acts];
  }

  show(tabs: readonly Tab[]): void {
    const keys = new Set(tabs.map((tab) => tab.key));
    for (const [key, { item }] of [...this.#shown].filter(([key]) => !keys.has(key))) {
      item.remove();
      this.#shown.delete(key);
    }
    for (const { key, title, isFront } of tabs) {
      const { show, close, item } = this.#shown.get(key) ?? this.#add(key);
      show.textContent = title;
      show.title = title;
      show.setAttribute("aria-current", `${isFront}`);
      close.setAttribute("aria-label", `Close ${title}`);
      item.classList.toggle("front", isFront);
    }
  }

  /** Takes the focus to the tab in front; says whether there is one. */
  focus(): boolean {
    const front = this.#element.querySelector<HTMLElement>("[aria-current=true]");
    front?.focus();
    return front !== null;
  }

  #add(key: string) {
    const item = document.createElement("li");
    const show = button(() => this.#acts.raise(key));
    const close = button(() => this.#acts.close(key));
    close.className = "close";
    close.textContent = "×";
    item.append(show, close);
    this.#element.append(item);
    const tab = { item, show, close };
    this.#shown.set(key, tab);
    return tab;
  }
}

function button(act: () => void): HTMLElement {
  const element = document.createElement("button");
  element.type = "button";
  element.addEventListener("click", act);
  return element;
}

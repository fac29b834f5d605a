/**
 * Which windows are in front where the page is a session's display.
 *
 * Windows without a parent are tabs, of which one is in front; those that have one, dialogs, lie above their tab.
 * Invariant: where there are windows, one tab is in front, and one window in it has the focus.
 */

/** See the module. */
export class Stack {
  /** The parents of all windows, in the order in which the windows came. */
  readonly #parents = new Map<string, string | undefined>();
  /** All windows, the one that was raised last at the end. */
  #order: string[] = [];

  /** A window is there, with this parent from now on. A new one comes to the front of its tab, a new tab of all. */
  set(key: string, parent: string | undefined): void {
    const isNew = !this.#parents.has(key);
    this.#parents.set(key, parent);
    if (isNew) {
      const front = this.front;
      const isBehind = this.#parentOf(key) !== undefined && this.tabOf(key) !== front;
      // The dialog of a tab behind waits there.
      const at = isBehind ? this.#order.indexOf(front ?? "") : this.#order.length;
      this.#order.splice(Math.max(at, 0), 0, key);
    }
  }

  remove(key: string): void {
    this.#parents.delete(key);
    this.#order = this.#order.filter((other) => other !== key);
  }

  /** Brings a window to the front, and its tab. */
  raise(key: string): void {
    if (this.#parents.has(key)) {
      this.#order = [...this.#order.filter((other) => other !== key), key];
    }
  }

  /** The tabs, in the order in which they came. */
  get tabs(): string[] {
    return [...this.#parents.keys()].filter((key) => this.#parentOf(key) === undefined);
  }

  /** The tab in front. */
  get front(): string | undefined {
    const last = this.#order.at(-1);
    return last === undefined ? undefined : this.tabOf(last);
  }

  /** The window that has the focus. */
  get focus(): string | undefined {
    return this.#order.at(-1);
  }

  /** The window of a tab that lies above its others. */
  top(tab: string): string {
    return this.#order.findLast((key) => this.tabOf(key) === tab) ?? tab;
  }

  /** Windows with a higher number lie above those with a lower one: dialogs above what they are of. */
  height(key: string): number {
    return this.#line(key).length * this.#order.length + this.#order.indexOf(key);
  }

  /** The tab that a window belongs to. */
  tabOf(key: string): string {
    return this.#line(key).at(-1) ?? key;
  }

  /** A window with all those that it is a dialog of. */
  #line(key: string): string[] {
    const line: string[] = [];
    for (let next: string | undefined = key; next !== undefined; next = this.#parentOf(next)) {
      // Programs can say that two windows are each other's dialogs.
      if (line.includes(next)) {
        break;
      }
      line.push(next);
    }
    return line;
  }

  /** The parent of a window, if it is there. */
  #parentOf(key: string): string | undefined {
    const parent = this.#parents.get(key);
    return parent !== undefined && this.#parents.has(parent) ? parent : undefined;
  }
}

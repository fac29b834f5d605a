/** What stands for a browser's page in tests. */

import { vi } from "vitest";
import type { News, Order } from "../src/talk.js";

/** What is used of an element, and of a document. */
export class FakeElement extends EventTarget {
  /** All that it said, one after the other. */
  readonly said = [""];
  value = "";
  inputMode = "none";
  hidden = false;
  readonly clientWidth = 800;
  readonly clientHeight = 600;
  readonly dataset = {};
  readonly style = { setProperty: () => undefined };
  readonly attributes = new Map<string, string>();
  readonly #classes = new Set<string>();
  readonly classList = {
    add: (name: string) => void this.#classes.add(name),
    contains: (name: string) => this.#classes.has(name),
    toggle: (name: string, isOn: boolean) => void this.#classes[isOn ? "add" : "delete"](name),
  };

  get textContent(): string {
    return this.said.at(-1) ?? "";
  }

  set textContent(text: string) {
    this.said.push(text);
  }

  append(): void {}
  replaceChildren(): void {}
  remove(): void {}
  focus(): void {}
  contains = () => false;
  transferControlToOffscreen = () => ({});

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
  }

  /** Something happens there; says whether it is left to the browser. */
  say(kind: string, fields = {}): boolean {
    return this.dispatchEvent(Object.assign(new Event(kind, { cancelable: true }), fields));
  }
}

/** The page's worker. */
export class FakeWorker {
  static last: FakeWorker;
  onmessage: ((message: { readonly data: News }) => void) | null = null;
  onerror: (() => void) | null = null;
  readonly orders: Order[] = [];
  isEnded = false;

  constructor() {
    FakeWorker.last = this;
  }

  postMessage(order: Order): void {
    this.orders.push(order);
  }

  terminate(): void {
    this.isEnded = true;
  }

  hear(data: News): void {
    this.onmessage?.({ data });
  }
}

/** The page's elements, by their names. */
export interface FakePage {
  readonly document: FakeElement & { title: string; documentElement: FakeElement };
  readonly window: EventTarget;
  element(id: string): FakeElement;
}

/** Has a page with this link in place of a browser's, until globals are as they were. */
export function openPage(fragment: string): FakePage {
  const elements = new Map<string, FakeElement>();
  const element = (id: string) => {
    const found = elements.get(id) ?? new FakeElement();
    elements.set(id, found);
    return found;
  };
  const body = new FakeElement();
  const document = Object.assign(new FakeElement(), {
    title: "Wayferry",
    body,
    activeElement: body,
    documentElement: new FakeElement(),
    getElementById: element,
    createElement: () => new FakeElement(),
    hasFocus: () => true,
  });
  const window = new EventTarget();
  const query = { matches: true, addEventListener: () => undefined };
  const globals = {
    document,
    self: globalThis,
    window,
    addEventListener: window.addEventListener.bind(window),
    location: { hash: `#${fragment}`, pathname: "/" },
    history: { replaceState: () => undefined },
    isSecureContext: true,
    devicePixelRatio: 1,
    navigator: {
      platform: "Linux",
      permissions: { query: async () => undefined },
      clipboard: { write: async () => undefined },
    },
    ClipboardItem: class {},
    matchMedia: () => query,
    ResizeObserver: class {
      observe(): void {}
    },
    Worker: FakeWorker,
    fetch: async () => ({ ok: true, status: 404, arrayBuffer: async () => new ArrayBuffer(0) }),
  };
  for (const [name, value] of Object.entries(globals)) {
    vi.stubGlobal(name, value);
  }
  return { document, window, element };
}

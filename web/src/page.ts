/**
 * The page itself: windows as figures, a badge that says how the link is, and a notice for each way in which it ends.
 *
 * It paints nothing and knows no protocol. Invariant: the ticket is in the address only until it was read.
 */

import { type Notice, noticeOf } from "./notices.js";
import type { Look, News, Order, State } from "./talk.js";

/** Begins to show what the page's own address names. */
export async function start(): Promise<void> {
  const ticket = decodeURIComponent(location.hash.slice(1));
  // A person who sees the address later can do nothing with it.
  history.replaceState(null, "", location.pathname);
  const view = new View(element("windows"), element("badge"), element("notice"));
  const module = await fetch("viewer.wasm").then((answer) => answer.arrayBuffer());
  const worker = new Worker("worker.js", { type: "module" });
  const order = (order: Order, moved: Transferable[] = []) => worker.postMessage(order, moved);
  worker.onmessage = ({ data }: MessageEvent<News>) => hear(view, data, order);
  worker.onerror = () => view.setState("broken");
  addEventListener("pagehide", () => order({ kind: "leave" }));
  order({ kind: "begin", module, ticket }, [module]);
}

function hear(view: View, news: News, order: (order: Order, moved: Transferable[]) => void): void {
  switch (news.kind) {
    case "state":
      view.setState(news.state);
      break;
    case "not shown":
      view.warn(`A program cannot be shown any more: ${news.why}.`);
      break;
    case "window": {
      const canvas = view.setWindow(news.key, news.look);
      if (canvas !== undefined) {
        order({ kind: "canvas", key: news.key, canvas }, [canvas]);
      }
      break;
    }
    case "gone":
      view.removeWindow(news.key);
      break;
    case "figures":
      view.setRoundTrip(news.rtt);
      break;
  }
}

/** What the page shows. */
class View {
  readonly #windows: HTMLElement;
  readonly #badge: HTMLElement;
  readonly #notice: HTMLElement;
  readonly #figures = new Map<string, HTMLElement>();
  #state: State = "connecting";

  constructor(windows: HTMLElement, badge: HTMLElement, notice: HTMLElement) {
    this.#windows = windows;
    this.#badge = badge;
    this.#notice = notice;
  }

  setState(state: State): void {
    this.#state = state;
    document.documentElement.dataset.state = state;
    const notice = noticeOf(state);
    this.#badge.textContent = notice === undefined ? BADGES[state] : "not connected";
    this.#show(notice);
  }

  setRoundTrip(milliseconds: number | undefined): void {
    if (this.#state === "shown") {
      const trip = milliseconds === undefined ? "" : ` · ${Math.round(milliseconds)} ms`;
      this.#badge.textContent = `${BADGES.shown}${trip}`;
    }
  }

  warn(text: string): void {
    this.#show({ title: "Not everything is shown", text, isEnd: false });
  }

  /** Shows how a window looks; gives its canvas if it is new. */
  setWindow(key: string, look: Look): OffscreenCanvas | undefined {
    const old = this.#figures.get(key);
    const figure = old ?? this.#add(key);
    const canvas = figure.querySelector("canvas");
    const caption = figure.querySelector("figcaption");
    const title = look.title || look.app || "a window";
    if (canvas === null || caption === null) {
      return undefined;
    }
    caption.textContent = title;
    canvas.setAttribute("aria-label", title);
    // What hangs over the window does not move it.
    const { geometry, extent } = look;
    figure.style.setProperty("--width", `${geometry.width}`);
    figure.style.setProperty("--height", `${geometry.height}`);
    canvas.style.left = percent(extent.x - geometry.x, geometry.width);
    canvas.style.top = percent(extent.y - geometry.y, geometry.height);
    canvas.style.width = percent(extent.width, geometry.width);
    canvas.style.height = percent(extent.height, geometry.height);
    return old === undefined ? canvas.transferControlToOffscreen() : undefined;
  }

  removeWindow(key: string): void {
    this.#figures.get(key)?.remove();
    this.#figures.delete(key);
  }

  #add(key: string): HTMLElement {
    const figure = document.createElement("figure");
    const frame = document.createElement("div");
    const canvas = document.createElement("canvas");
    const caption = document.createElement("figcaption");
    canvas.setAttribute("role", "img");
    frame.append(canvas);
    figure.append(caption, frame);
    this.#windows.append(figure);
    this.#figures.set(key, figure);
    return figure;
  }

  #show(notice: Notice | undefined): void {
    this.#notice.hidden = notice === undefined;
    if (notice === undefined) {
      return;
    }
    const title = document.createElement("h1");
    const text = document.createElement("p");
    title.textContent = notice.title;
    text.textContent = notice.text;
    this.#notice.replaceChildren(title, text);
    document.documentElement.classList.toggle("over", notice.isEnd);
  }
}

function percent(part: number, whole: number): string {
  return `${whole > 0 ? (part / whole) * 100 : 0}%`;
}

function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`the page has no ${id}`);
  }
  return found;
}

const BADGES = { connecting: "connecting …", shown: "connected" } as Record<State, string>;

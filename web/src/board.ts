/**
 * What the page says beside the windows: how the link is, how it ended, and what happens by the way.
 *
 * Invariant: what a session says reaches the page as text.
 */

import { type Notice, noticeOf } from "./notices.js";
import type { CarrierName, State } from "./talk.js";

/** See the module. */
export class Board {
  /** Is read aloud when it changes; the figures of the link, which do so all the time, are not. */
  readonly #live = element("state");
  readonly #link = element("link");
  readonly #notice = element("notice");
  readonly #toast = element("toast");
  readonly #onRetry: () => void;
  #state: State = "connecting";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(onRetry: () => void) {
    this.#onRetry = onRetry;
    element("dismiss").addEventListener("click", () => this.hush());
  }

  get state(): State {
    return this.#state;
  }

  setState(state: State): void {
    if (this.#state === "away") {
      this.hush();
    }
    this.#state = state;
    const root = document.documentElement;
    root.dataset.state = state;
    const notice = noticeOf(state);
    put(this.#live, notice === undefined ? BADGES[state] : "not connected");
    put(this.#link, "");
    root.classList.toggle("over", notice !== undefined);
    this.#notice.hidden = notice === undefined;
    if (state === "away") {
      this.say(root.classList.contains("control") ? `${AWAY} ${WAITING}` : AWAY);
    }
    if (notice !== undefined) {
      this.hush();
      this.#show(notice);
    }
  }

  /** What the session is on, how many milliseconds a round trip takes, and what of its packets is lost, in percent. */
  setLink(carrier: CarrierName, milliseconds: number | undefined, lost: number | undefined): void {
    if (this.#state === "shown") {
      const trip = milliseconds === undefined ? "" : ` · ${Math.round(milliseconds)} ms`;
      const share = lost === undefined ? "" : ` · ${Number(lost.toPrecision(lost < 1 ? 1 : 2))} % lost`;
      put(this.#link, ` · ${carrier}${trip}${share}`);
    }
  }

  /** Tells something by the way, for some milliseconds or until it is dismissed. */
  say(text: string, lasts?: number): void {
    clearTimeout(this.#timer);
    element("said").textContent = text;
    this.#toast.hidden = false;
    if (lasts !== undefined) {
      this.#timer = setTimeout(() => this.hush(), lasts);
    }
  }

  hush(): void {
    clearTimeout(this.#timer);
    this.#toast.hidden = true;
  }

  #show({ title, text, ways, canRetry }: Notice): void {
    const parts = [write("h1", title), write("p", text)];
    if (ways.length > 0) {
      const list = document.createElement("ul");
      list.append(...ways.map((way) => write("li", way)));
      parts.push(list);
    }
    if (canRetry) {
      const again = write("button", "Try again");
      again.addEventListener("click", this.#onRetry);
      parts.push(again);
    }
    this.#notice.replaceChildren(...parts);
  }
}

/** An element of the page. */
export function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`the page has no ${id}`);
  }
  return found;
}

/** Writes what an element does not say yet: what is written is read aloud, though it is the same. */
function put(place: HTMLElement, text: string): void {
  if (place.textContent !== text) {
    place.textContent = text;
  }
}

function write(tag: string, text: string): HTMLElement {
  const written = document.createElement(tag);
  written.textContent = text;
  return written;
}

const BADGES = {
  connecting: "connecting …",
  shown: "connected",
  away: "no connection",
} as Record<State, string>;

const AWAY = "The connection is lost. The page looks for the session by itself.";
const WAITING = "Keys that you type wait for it.";

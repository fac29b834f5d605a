/**
 * The page itself: its windows and its bar, with a worker that has the rest.
 *
 * It paints nothing and knows no protocol. Invariant: the ticket is in the address only until it was read.
 */

import { Board, element } from "./board.js";
import { BROWSER, Clipboard } from "./clipboard.js";
import { showCursor } from "./cursor-style.js";
import { Hands } from "./hands.js";
import { Sound } from "./sound/sound.js";
import { Tabs } from "./tabs.js";
import type { Input, Link, News, Order, State } from "./talk.js";
import { isMeant, readLink } from "./ticket.js";
import { toggles } from "./toggles.js";
import { Windows } from "./windows.js";

/** Begins to show what the page's own address names. */
export async function start(): Promise<void> {
  const link = readLink(location.hash.slice(1));
  // A person who sees the address later can do nothing with it.
  history.replaceState(null, "", location.pathname);
  await new Page(link).begin();
}

/** See the module. */
class Page {
  readonly #link: Link;
  readonly #board = new Board(() => void this.begin());
  readonly #windows: Windows;
  readonly #tabs: Tabs;
  readonly #hands: Hands | undefined;
  readonly #sound = new Sound(
    element("sound"),
    (order, moved) => this.#order(order, moved),
    (text) => this.#board.say(text),
  );
  #worker: Worker | undefined;
  #module: ArrayBuffer | undefined;

  constructor(link: Link) {
    this.#link = link;
    document.documentElement.classList.add(link.control ? "control" : "view");
    this.#windows = new Windows(element("windows"), link.control, {
      tabs: (tabs) => this.#tabs.show(tabs),
      focus: (key) => this.#focus(key),
      title: (title) => {
        document.title = title === "" ? "Wayferry" : `${title} – Wayferry`;
        element("field").setAttribute("aria-label", `Keys go to ${title || "the session"}`);
      },
    });
    this.#tabs = new Tabs(element("tabs"), {
      raise: (key) => {
        this.#windows.raise(key);
        this.#hands?.focus();
      },
      close: (key) => {
        this.#hands?.tell({ kind: "close", key: this.#windows.topOf(key) });
        this.#hands?.focus();
      },
    });
    this.#hands = link.control ? this.#work() : undefined;
    toggles(this.#hands);
    this.#keepFocus();
    // Browsers keep Ctrl+W for themselves, which many mean for a shell; the link does not work again.
    addEventListener("beforeunload", (event) => {
      if (link.control && ["shown", "away"].includes(this.#board.state)) {
        event.preventDefault();
      }
    });
    addEventListener("pagehide", () => this.#order({ kind: "leave" }));
    addEventListener("online", () => this.#order({ kind: "retry" }));
    document.addEventListener("visibilitychange", () => document.hidden || this.#order({ kind: "retry" }));
  }

  /** Opens the link, once more where it was tried before and no session was begun. */
  async begin(): Promise<void> {
    if (!isSecureContext) {
      return this.#board.setState("insecure");
    }
    this.#board.setState("connecting");
    const state = this.#module === undefined ? await this.#fetch() : undefined;
    if (state !== undefined) {
      return this.#board.setState(state);
    }
    this.#order({ kind: "begin", module: this.#module as ArrayBuffer, link: this.#link });
    this.#hands?.begin();
  }

  /**
   * Fetches what the page needs, once: later somebody else may have the port that it is from. Gives what keeps it from
   * going on.
   */
  async #fetch(): Promise<State | undefined> {
    const fetched = fetch("viewer.wasm").then((answer) => (answer.ok ? answer.arrayBuffer() : undefined));
    const [module, isGood] = await Promise.all([fetched, isMeant(this.#link.ticket)]).catch(() => []);
    if (module === undefined) {
      return "unserved";
    }
    if (isGood !== true) {
      return "no link";
    }
    const worker = new Worker("worker.js", { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<News>) => this.#hear(data);
    worker.onerror = () => this.#fail(worker);
    [this.#module, this.#worker] = [module, worker];
    return undefined;
  }

  /** After a fault of the worker: what still works there leaves the session; its end closes the link in any case. */
  #fail(worker: Worker): void {
    [worker.onerror, worker.onmessage] = [null, null];
    this.#order({ kind: "leave" });
    setTimeout(() => worker.terminate(), LEAVING);
    this.#hear({ kind: "state", state: "broken" });
  }

  #order(order: Order, moved: Transferable[] = []): void {
    this.#worker?.postMessage(order, moved);
  }

  #work(): Hands {
    const area = element("field") as HTMLTextAreaElement;
    const order = (input: Input) => this.#order({ kind: "input", input });
    const exit = () => this.#tabs.focus() || element("full").focus();
    const clipboard = new Clipboard(BROWSER, () =>
      this.#board.say("What you paste is more than a page can take: 1 MiB of text, or a picture of 8 MiB."),
    );
    return new Hands(this.#windows, element("windows"), area, { order, exit, clipboard });
  }

  /** Who clicks beside the windows goes on typing into them. */
  #keepFocus(): void {
    for (const place of this.#hands ? [element("bar"), element("toast")] : []) {
      place.addEventListener("mousedown", (event) => event.preventDefault());
    }
    element("dismiss").addEventListener("click", () => this.#hands?.focus());
  }

  #hear(news: News): void {
    switch (news.kind) {
      case "state":
        this.#board.setState(news.state);
        if (this.#board.state !== "shown" && this.#board.state !== "away") {
          this.#sound.offer(false);
        }
        this.#settle();
        break;
      case "sound":
        this.#sound.offer(true);
        break;
      case "not shown":
        this.#board.say(`A program cannot be shown any more: ${news.why}.`);
        break;
      case "window": {
        const canvas = this.#windows.set(news.key, news.look);
        if (canvas !== undefined) {
          this.#order({ kind: "canvas", key: news.key, canvas }, [canvas]);
        }
        this.#settle();
        break;
      }
      case "gone":
        this.#windows.remove(news.key);
        this.#settle();
        break;
      case "figures":
        this.#board.setLink(news.carrier, news.rtt, news.lost);
        this.#sound.measure();
        break;
      case "cursor":
        showCursor(element("windows"), news.cursor);
        break;
      case "copied":
        this.#hands?.clipboard.copied(news.clip).catch(() => undefined);
        break;
      case "missed":
        this.#board.say(
          "No more keys can wait for the session: what you type now is lost, until those that wait have gone.",
          this.#board.state === "shown" ? MISSED : undefined,
        );
        break;
      case "taken":
        this.#hands?.taken();
        break;
    }
  }

  /** Says it where there is nothing to be seen. */
  #settle(): void {
    element("empty").hidden = this.#board.state !== "shown" || !this.#windows.isEmpty;
  }

  #focus(key: string): void {
    this.#hands?.tell({ kind: "focus", key });
    // Who works in the bar stays there.
    if (document.activeElement === document.body) {
      this.#hands?.focus();
      if (!matchMedia("(pointer: coarse)").matches) {
        this.#board.say(
          "Keys go to the window. Ctrl+Alt+Escape brings you back to the page’s own buttons.",
          8000,
        );
      }
    }
  }
}

/** Milliseconds for which it is told that keys are lost, where the session is there. */
const MISSED = 10_000;
/** Milliseconds that a worker may take to leave. */
const LEAVING = 1000;

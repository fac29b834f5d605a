/**
 * Everything by which a user works in a session's windows: the listeners of the page.
 *
 * Invariant: what happens beside the windows, in the bar, is none of theirs.
 */

import { Area, watch } from "./area.js";
import type { Clipboard } from "./clipboard.js";
import { Field } from "./input/field.js";
import { Gate } from "./input/gate.js";
import { Keyboard, type System } from "./input/keyboard.js";
import { evdev } from "./input/keys.js";
import { Outbox } from "./input/outbox.js";
import { Pointer } from "./input/pointer.js";
import type { Input } from "./talk.js";
import { TIMERS } from "./timers.js";
import type { Windows } from "./windows.js";

/** What not all browsers have. */
interface Mapped {
  readonly keyboard?: { getLayoutMap?(): Promise<Iterable<[string, string]>> };
}

/** What the hands act on beside the windows. */
export interface Around {
  /** Tells the worker. */
  order(input: Input): void;
  /** The user asks for the page's own buttons. */
  exit(): void;
  readonly clipboard: Clipboard;
}

/** See the module. */
export class Hands {
  readonly field: Field;
  readonly clipboard: Clipboard;
  #outbox: Outbox;
  readonly #gate: Gate;
  readonly #area: Area;
  readonly #pointer: Pointer;
  readonly #order: (input: Input) => void;

  constructor(windows: Windows, place: HTMLElement, area: HTMLTextAreaElement, around: Around) {
    this.#order = around.order;
    this.clipboard = around.clipboard;
    this.#outbox = new Outbox(around.order);
    this.#gate = new Gate((input) => this.#outbox.send(input), TIMERS);
    const tell = (input: Input) => this.tell(input);
    const keyboard = new Keyboard(system(), tell);
    this.field = new Field(area, keyboard, tell, {
      exit: around.exit,
      pastes: () => this.#gate.hold(),
      pasted: (pasted) => this.#gate.answer(this.clipboard.pasted(pasted)),
    });
    this.#pointer = new Pointer(windows, tell, TIMERS);
    this.#listen(place, keyboard);
    this.#listenToClipboard();
    this.#area = new Area((size) => tell({ kind: "area", size }), TIMERS);
    watch(place, this.#area);
  }

  /** A worker is new: it is told what there is. */
  begin(): void {
    this.#outbox = new Outbox(this.#order);
    this.#area.again();
    this.#tellLayout().catch(() => undefined);
    this.#lookAtClipboard().catch(() => undefined);
  }

  /** The worker has taken a motion. */
  taken(): void {
    this.#outbox.taken();
  }

  /** The field has the focus from now on. */
  focus(): void {
    this.field.focus();
  }

  /** Tells the worker something, after what it was told before. */
  tell(input: Input): void {
    if (input.kind === "blur") {
      this.#pointer.blur();
    }
    this.#gate.send(input);
  }

  /** Says what the keys write, where the browser tells: Chromium does. */
  async #tellLayout(): Promise<void> {
    const layout = (await (navigator as Mapped).keyboard?.getLayoutMap?.()) ?? [];
    const pairs = [...layout].flatMap(([place, character]) => {
      const code = evdev(place);
      return code === undefined || [...character].length !== 1
        ? []
        : [String.fromCodePoint(code) + character];
    });
    if (pairs.length > 0) {
      this.tell({ kind: "layout", pairs: pairs.join("") });
    }
  }

  #listenToClipboard(): void {
    // With these a browser counts the user as there.
    for (const kind of ["keydown", "mousedown", "pointerup"]) {
      const write = () => this.clipboard.gesture().catch(() => undefined);
      addEventListener(kind, write, { capture: true });
    }
    addEventListener("focus", () => this.#lookAtClipboard().catch(() => undefined));
    addEventListener("blur", () => this.clipboard.blurred());
  }

  async #lookAtClipboard(): Promise<void> {
    const offer = await this.clipboard.focused();
    if (offer !== undefined) {
      this.tell(offer);
    }
  }

  #listen(place: HTMLElement, keyboard: Keyboard): void {
    const on = (event: PointerEvent) => this.#pointer.on(event);
    const motion = "onpointerrawupdate" in window ? ["pointerrawupdate"] : [];
    for (const kind of [...motion, "pointermove", "pointerup", "pointercancel", "pointerleave"]) {
      place.addEventListener(kind, on as EventListener);
    }
    const isBar = ({ target, offsetX, offsetY }: MouseEvent) =>
      target === place && (offsetX >= place.clientWidth || offsetY >= place.clientHeight);
    place.addEventListener("pointerdown", (event) => {
      if (isBar(event)) {
        return;
      }
      this.field.move(event.clientX, event.clientY);
      this.focus();
      (event.target as Element).setPointerCapture(event.pointerId);
      keyboard.sync(event);
      on(event);
    });
    // The field keeps the focus, and what was pressed does not get it.
    place.addEventListener("mousedown", (event) => isBar(event) || event.preventDefault());
    // Browsers have a menu of their own, and go back and forward with a mouse's side buttons.
    for (const kind of ["contextmenu", "mouseup", "auxclick"]) {
      place.addEventListener(kind, (event) => event.preventDefault());
    }
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      keyboard.sync(event);
      this.#pointer.wheel(event);
    };
    place.addEventListener("wheel", wheel, { passive: false });
    // What is dropped would take the page's place.
    for (const kind of ["dragover", "drop"]) {
      addEventListener(kind, (event) => event.preventDefault());
    }
    document.addEventListener("visibilitychange", () => document.hidden && keyboard.blur());
    addEventListener("blur", () => keyboard.blur());
  }
}

function system(): System {
  const { platform } = navigator;
  return /^(Mac|iP)/.test(platform) ? "mac" : platform.startsWith("Win") ? "windows" : "other";
}

/**
 * Everything by which a user works in a session's windows: the listeners of the page.
 *
 * Invariant: what happens beside the windows, in the bar, is none of theirs.
 */

import { Area, watch } from "./area.js";
import { Field } from "./input/field.js";
import { Keyboard, type System } from "./input/keyboard.js";
import { Outbox } from "./input/outbox.js";
import { Pointer } from "./input/pointer.js";
import { TIMERS } from "./input/timers.js";
import type { Input } from "./talk.js";
import type { Windows } from "./windows.js";

/** See the module. */
export class Hands {
  readonly field: Field;
  #outbox: Outbox;
  readonly #area: Area;
  readonly #pointer: Pointer;
  readonly #order: (input: Input) => void;

  /** `onExit` is called when the user asks for the page's own buttons. */
  constructor(
    windows: Windows,
    place: HTMLElement,
    area: HTMLTextAreaElement,
    order: (input: Input) => void,
    onExit: () => void,
  ) {
    this.#order = order;
    this.#outbox = new Outbox(order);
    const tell = (input: Input) => this.tell(input);
    const keyboard = new Keyboard(system(), tell);
    this.field = new Field(area, keyboard, tell, onExit);
    this.#pointer = new Pointer(windows, tell, TIMERS);
    this.#listen(place, keyboard);
    this.#area = new Area((size) => tell({ kind: "area", size }), TIMERS);
    watch(place, this.#area);
  }

  /** A worker is new: it is told what there is. */
  begin(): void {
    this.#outbox = new Outbox(this.#order);
    this.#area.again();
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
    this.#outbox.send(input);
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
    place.addEventListener("contextmenu", (event) => event.preventDefault());
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
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

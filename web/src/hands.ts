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
import type { Point } from "./input/touch.js";
import type { Input, Order } from "./talk.js";
import type { Windows } from "./windows.js";

/** See the module. */
export class Hands {
  readonly field: Field;
  readonly #outbox: Outbox;
  readonly #area: Area;
  readonly #pointer: Pointer;
  readonly #order: (order: Order) => void;
  readonly #onPress: (() => void) | undefined;

  /** `onExit` is called when the user asks for the page's own controls, `onPress` whenever the user does something. */
  constructor(
    windows: Windows,
    place: HTMLElement,
    area: HTMLTextAreaElement,
    order: (order: Order) => void,
    acts: { onExit(): void; onPress(): void },
  ) {
    this.#order = order;
    this.#onPress = acts.onPress;
    this.#outbox = new Outbox((input) => order({ kind: "input", input }));
    const tell = (input: Input) => this.#tell(input);
    const keyboard = new Keyboard(system(), tell);
    this.field = new Field(area, keyboard, tell, acts.onExit);
    this.#pointer = new Pointer(windows, tell, TIMERS);
    this.#listen(place, keyboard);
    this.#area = new Area((size) => this.#order({ kind: "area", size }), TIMERS);
    watch(place, this.#area);
  }

  /** A worker is new: it is told what there is. */
  begin(): void {
    this.#outbox.clear();
    this.#area.again();
  }

  /** The worker has taken a motion. */
  taken(): void {
    this.#outbox.taken();
  }

  /** The field has the focus, and input methods are there. */
  focus(at?: Point): void {
    if (at !== undefined) {
      this.field.move(at.x, at.y);
    }
    this.field.focus();
  }

  #tell(input: Input): void {
    if (input.kind === "blur") {
      this.#pointer.blur();
    } else if (input.kind === "key" || input.kind === "button") {
      this.#onPress?.();
    }
    this.#outbox.send(input);
  }

  #listen(place: HTMLElement, keyboard: Keyboard): void {
    const on = (event: PointerEvent) => this.#pointer.on(event);
    const motion = "onpointerrawupdate" in window ? ["pointerrawupdate"] : [];
    for (const kind of [...motion, "pointermove", "pointerup", "pointercancel", "pointerleave"]) {
      place.addEventListener(kind, on as EventListener);
    }
    place.addEventListener("pointerdown", (event) => {
      // The field keeps the focus.
      event.preventDefault();
      (event.target as Element).setPointerCapture(event.pointerId);
      keyboard.sync(event);
      on(event);
    });
    place.addEventListener("mousedown", (event) => event.preventDefault());
    place.addEventListener("contextmenu", (event) => event.preventDefault());
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      this.#pointer.wheel(event);
    };
    place.addEventListener("wheel", wheel, { passive: false });
    document.addEventListener("visibilitychange", () => document.hidden && keyboard.blur());
    addEventListener("blur", () => keyboard.blur());
  }
}

function system(): System {
  const { platform } = navigator;
  return /^(Mac|iP)/.test(platform) ? "mac" : platform.startsWith("Win") ? "windows" : "other";
}

/**
 * Holds input back while the browser is asked what it would paste.
 *
 * The key that pastes is told after what it pastes, and what is done next after that. Invariant: everything goes on in
 * its order, once; a key that the browser does not answer, after {@link PATIENCE}.
 */

import type { Input } from "../talk.js";
import type { Timers } from "../timers.js";

/** See the module. */
export class Gate {
  readonly #send: (input: Input) => void;
  readonly #timers: Timers;
  /** What waits, from each key that pastes to the next one. */
  readonly #held: Input[][] = [];
  #timer: number | undefined;

  constructor(send: (input: Input) => void, timers: Timers) {
    [this.#send, this.#timers] = [send, timers];
  }

  /** What comes next is a key that pastes. */
  hold(): void {
    this.#held.push([]);
    this.#wait();
  }

  /** The browser has said what is pasted; nothing if that is of no use. */
  answer(offer: Input | undefined): void {
    if (offer !== undefined) {
      this.#send(offer);
    }
    this.#letOn();
  }

  send(input: Input): void {
    if (input.kind === "blur") {
      // No answer comes to a page that has lost the focus.
      while (this.#held.length > 0) {
        this.#letOn();
      }
    }
    const last = this.#held.at(-1);
    if (last === undefined) {
      this.#send(input);
    } else {
      last.push(input);
    }
  }

  #letOn(): void {
    this.#timers.clear(this.#timer);
    this.#timer = undefined;
    for (const input of this.#held.shift() ?? []) {
      this.#send(input);
    }
    this.#wait();
  }

  #wait(): void {
    if (this.#held.length > 0) {
      this.#timer ??= this.#timers.set(() => this.#letOn(), PATIENCE);
    }
  }
}

/** Milliseconds in which browsers answer; some ask another process. */
const PATIENCE = 200;

/**
 * Hands input to the worker: everything in order, and of motions only the latest once it has taken the one before.
 *
 * Invariant: at most one motion is on its way, and what follows a motion never overtakes it.
 */

import type { Input } from "../talk.js";

type Motion = Extract<Input, { kind: "move" }>;

/** See the module. */
export class Outbox {
  readonly #post: (input: Input) => void;
  /** Motions that the worker has not taken. */
  #untaken = 0;
  #latest: Motion | undefined;

  constructor(post: (input: Input) => void) {
    this.#post = post;
  }

  send(input: Input): void {
    if (input.kind === "move") {
      this.#latest = input;
      if (this.#untaken === 0) {
        this.#flush();
      }
    } else {
      this.#flush();
      this.#post(input);
    }
  }

  /** The worker has taken a motion. */
  taken(): void {
    this.#untaken = Math.max(0, this.#untaken - 1);
    if (this.#untaken === 0) {
      this.#flush();
    }
  }

  #flush(): void {
    const latest = this.#latest;
    this.#latest = undefined;
    if (latest !== undefined) {
      this.#untaken += 1;
      this.#post(latest);
    }
  }
}

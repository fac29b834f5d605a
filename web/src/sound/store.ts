/**
 * What a loudspeaker holds: it plays what it was given, and asks for more.
 *
 * Invariant: one question is under way at most, so nothing piles up where no answer comes; it holds {@link MOST} frames.
 */

/** How it is. All are frames. */
export interface Ask {
  readonly held: number;
  /** What was held at the least since the last question. */
  readonly spare: number;
  /** What was not there when it should have been played, since then. */
  readonly missed: number;
}

/** See the module. */
export class Store {
  readonly #ask: (ask: Ask) => void;
  /** The left and the right sample of each frame. */
  readonly #ring = new Float32Array(2 * MOST);
  #first = 0;
  #held = 0;
  #spare = 0;
  #missed = 0;
  /** Frames until it asks again. */
  #rest = 0;
  #waits = false;
  /** What was heard last. */
  readonly #last: [number, number] = [0, 0];

  constructor(ask: (ask: Ask) => void) {
    this.#ask = ask;
  }

  /** Takes an answer; of what is too much, the oldest goes. */
  take(block: Float32Array): void {
    this.#waits = false;
    for (let at = 0; at + 1 < block.length; at += 2) {
      if (this.#held === MOST) {
        this.#drop();
      }
      const place = (this.#first + this.#held) % MOST;
      this.#ring.set(block.subarray(at, at + 2), 2 * place);
      this.#held += 1;
    }
  }

  /** Plays so many frames as there is room for. */
  play(left: Float32Array, right: Float32Array): void {
    for (let at = 0; at < left.length; at += 1) {
      if (this.#held > 0) {
        this.#last[0] = this.#ring[2 * this.#first] ?? 0;
        this.#last[1] = this.#ring[2 * this.#first + 1] ?? 0;
        this.#drop();
      } else {
        this.#missed += 1;
        // A sound that breaks off clicks.
        this.#last[0] *= FADE;
        this.#last[1] *= FADE;
      }
      left[at] = this.#last[0];
      right[at] = this.#last[1];
    }
    this.#spare = Math.min(this.#spare, this.#held);
    this.#rest -= left.length;
    if (this.#rest <= 0 && !this.#waits) {
      this.#waits = true;
      this.#rest = EVERY;
      this.#ask({ held: this.#held, spare: this.#spare, missed: this.#missed });
      this.#spare = this.#held;
      this.#missed = 0;
    }
  }

  #drop(): void {
    this.#first = (this.#first + 1) % MOST;
    this.#held -= 1;
  }
}

/** Frames that are held at most: 200 ms. */
export const MOST = 9600;
/** Frames between two questions: 8 ms. */
const EVERY = 384;
/** What is left of a sample in the next, where a sound breaks off: nothing is heard after 5 ms. */
const FADE = 0.98;

/**
 * Looks for a link again when one was lost.
 *
 * An attempt over a network that swallows all takes long, so the next one begins beside it. Invariant: while it looks,
 * an attempt is under way or will be, and of those that succeed the first is used and the others are dropped.
 */

import { raise } from "./carrier.js";
import type { Timers } from "./timers.js";

/** What is looked for. */
export interface Goal<T> {
  /** One attempt, which ends by itself; nothing where it failed. */
  connect(): Promise<T | undefined>;
  found(link: T): void;
  /** One more than is needed. */
  drop(link: T): void;
}

/** See the module. */
export class Search<T> {
  readonly #goal: Goal<T>;
  readonly #timers: Timers;
  /** Counts searches; an attempt of an earlier one is none of this. */
  #number = 0;
  #isLooking = false;
  #attempts = 0;
  #underWay = 0;
  #timer: ReturnType<Timers["set"]> | undefined;

  constructor(goal: Goal<T>, timers: Timers) {
    this.#goal = goal;
    this.#timers = timers;
  }

  /** Looks from now on: at once where the last link was good, else after a pause as if that had been an attempt. */
  begin(wasGood: boolean): void {
    if (this.#isLooking) {
      return;
    }
    this.#isLooking = true;
    this.#attempts = wasGood ? 0 : this.#attempts;
    this.#wait();
  }

  /** Tries at once, if no more are under way than may be: there is a network again, or somebody looks. */
  now(): void {
    if (this.#isLooking) {
      this.#attempts = 0;
      this.#wait();
    }
  }

  stop(): void {
    this.#isLooking = false;
    this.#number += 1;
    this.#timers.clear(this.#timer);
  }

  #wait(): void {
    this.#timers.clear(this.#timer);
    const pause = PAUSES[this.#attempts] ?? (this.#attempts < EAGER ? LAST_PAUSE : SELDOM);
    this.#timer = this.#timers.set(() => this.#try(), pause);
  }

  #try(): void {
    this.#attempts += 1;
    this.#wait();
    if (this.#underWay < MAX_UNDER_WAY) {
      this.#attempt(this.#number).catch(raise);
    }
  }

  async #attempt(number: number): Promise<void> {
    this.#underWay += 1;
    const link = await this.#goal.connect().catch(() => undefined);
    this.#underWay -= 1;
    if (number !== this.#number) {
      if (link !== undefined) {
        this.#goal.drop(link);
      }
      return;
    }
    if (link !== undefined) {
      this.stop();
      this.#goal.found(link);
    }
  }
}

/** Milliseconds before each attempt: the first ones, those of the first minutes, and later ones. */
const PAUSES = [0, 250, 500, 1000];
const LAST_PAUSE = 2000;
const SELDOM = 10_000;
/** How many attempts the first minutes have. */
const EAGER = 150;
/** Attempts at once; a slow network needs each for some seconds. */
const MAX_UNDER_WAY = 6;

import { expect, test } from "vitest";
import { Search } from "../src/search.js";
import { FakeTimers } from "./fakes.js";

/** Attempts that end when the test says so. */
class World {
  readonly attempts: ((link: string | undefined) => void)[] = [];
  readonly log: string[] = [];
  readonly timers = new FakeTimers();
  readonly search = new Search<string>(
    {
      connect: () => new Promise((end) => this.attempts.push(end)),
      found: (link) => void this.log.push(`found ${link}`),
      drop: (link) => void this.log.push(`dropped ${link}`),
    },
    this.timers,
  );

  async end(attempt: number, link?: string): Promise<void> {
    this.attempts[attempt]?.(link);
    await Promise.resolve();
    await Promise.resolve();
  }

  /** How many attempts begin within so many milliseconds, each by the millisecond at which it does. */
  begins(within: number): number[] {
    const at: number[] = [];
    for (let time = 1; time <= within; time += 1) {
      const before = this.attempts.length;
      this.timers.pass(1);
      at.push(...Array(this.attempts.length - before).fill(time));
    }
    return at;
  }
}

test("a good link that is lost is looked for at once, then ever more seldom", () => {
  const world = new World();
  world.search.begin(true);
  world.timers.pass(0);
  expect(world.attempts.length).toBe(1);
  expect(world.begins(4000)).toEqual([250, 750, 1750, 3750]);
});

test("the first link that is found is used, and later ones are dropped", async () => {
  const world = new World();
  world.search.begin(true);
  world.timers.pass(0);
  world.timers.pass(250);
  await world.end(1, "second");
  await world.end(0, "first");
  expect(world.log).toEqual(["found second", "dropped first"]);
  expect(world.begins(20_000)).toEqual([]);
});

test("a link that is lost before it was good is looked for after a pause, and not before", async () => {
  const world = new World();
  world.search.begin(true);
  world.timers.pass(0);
  await world.end(0, "bad");
  world.search.begin(false);
  expect(world.begins(1000)).toEqual([250, 750]);
});

test("at most six attempts are under way, and one that has failed makes room", async () => {
  const world = new World();
  world.search.begin(true);
  world.begins(60_000);
  expect(world.attempts.length).toBe(6);
  await world.end(0);
  expect(world.begins(4000).length).toBe(1);
});

test("attempts of an earlier search count until they have ended", async () => {
  const world = new World();
  world.search.begin(true);
  world.begins(60_000);
  world.search.stop();
  world.search.begin(true);
  expect(world.begins(1000)).toEqual([]);
  await world.end(0);
  expect(world.begins(1000).length).toBe(1);
});

test("who looks at the page, or has a network again, waits no longer", () => {
  const world = new World();
  world.search.now();
  expect(world.begins(1000)).toEqual([]);
  world.search.begin(true);
  world.begins(5000);
  const before = world.attempts.length;
  world.search.now();
  world.timers.pass(0);
  expect(world.attempts.length).toBe(before + 1);
});

test("what is found when nothing is looked for any more is dropped", async () => {
  const world = new World();
  world.search.begin(true);
  world.timers.pass(0);
  world.search.stop();
  await world.end(0, "late");
  expect(world.log).toEqual(["dropped late"]);
  expect(world.begins(10_000)).toEqual([]);
});

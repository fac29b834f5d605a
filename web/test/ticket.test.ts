import { expect, test, vi } from "vitest";
import { isMeant, readTicket } from "../src/ticket.js";

/** A ticket with these addresses, as the host writes it. */
async function ticket(addresses: readonly number[][]): Promise<string> {
  const fields = [
    ...Array(16).fill(1),
    ...Array(32).fill(2),
    ...Array(32).fill(3),
    addresses.length,
    ...addresses.flat(),
  ];
  const body = Uint8Array.from(fields);
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", body)).slice(0, 4);
  const text = btoa(String.fromCharCode(...body, ...sum));
  return `wf1:${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

const FOUR = [4, 192, 0, 2, 7, 0x11, 0x51];
const SIX = [6, 0x20, 1, 0xd, 0xb8, ...Array(11).fill(0), 9, 0, 80];

test("a ticket says where the session is and how it is known", async () => {
  const read = await readTicket(await ticket([FOUR, SIX]));
  expect(read?.places).toEqual(["192.0.2.7:4433", "[2001:db8:0:0:0:0:0:9]:80"]);
  expect(read?.certificate).toEqual(new Uint8Array(32).fill(2));
  expect(read?.secret).toEqual(Uint8Array.from([...Array(16).fill(1), ...Array(32).fill(3)]));
});

test("what is no ticket, or a part of one, is none", async () => {
  const whole = await ticket([FOUR]);
  expect(await readTicket(whole)).toBeDefined();
  for (const wrong of ["", "wf1:", "wf1:%%%", whole.slice(0, -1), whole.slice(4), whole.replace("Q", "R")]) {
    expect(await readTicket(wrong)).toBeUndefined();
  }
  expect(await readTicket(await ticket([[5, 1, 2, 3, 4, 0, 80]]))).toBeUndefined();
  expect(await readTicket(await ticket([FOUR.slice(0, 5)]))).toBeUndefined();
  expect(await readTicket(await ticket([[...FOUR, 0]]))).toBeUndefined();
});

test("tickets that this page is not for are refused", async () => {
  const ours = await ticket([FOUR]);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(ours)));
  const digits = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  try {
    vi.stubGlobal("fetch", async () => new Response(`${"0".repeat(64)}\n${digits}`));
    expect(await isMeant(ours)).toBe(true);
    expect(await isMeant(await ticket([SIX]))).toBe(false);
    vi.stubGlobal("fetch", async () => new Response("", { status: 404 }));
    expect(await isMeant(await ticket([SIX]))).toBe(true);
    // Another port of the same host can have cookies sent that are too long for the server of the page.
    for (const status of [400, 421, 431, 500]) {
      vi.stubGlobal("fetch", async () => new Response("", { status }));
      await expect(isMeant(await ticket([SIX]))).rejects.toThrow(String(status));
    }
    const asked = vi.fn(async (_file: string, _how: RequestInit) => new Response(digits));
    vi.stubGlobal("fetch", asked);
    expect(await isMeant(ours)).toBe(true);
    expect(asked.mock.calls).toEqual([["links", { credentials: "omit" }]]);
  } finally {
    vi.unstubAllGlobals();
  }
});

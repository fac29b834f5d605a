// In a page from its beginning. `first` becomes when its canvas first showed something; after `ready(floor)`, `answer`
// becomes how late the next key is seen. All in milliseconds, and in the frame that is painted: a page whose canvas is
// painted by a worker (`painted.js`) is told by that; one that paints itself has the frame looked at that follows.
const PATIENCE = 5000;

// Who has seen what last, and who wants to hear of it: the worker that paints, and the page itself.
const painter = { last: undefined, hear: undefined };
const page = { last: undefined, hear: undefined };
const note = (reader, reading) => {
    reader.last = reading;
    reader.hear?.(reading);
};
const channel = new BroadcastChannel("painted");
channel.onmessage = ({ data }) => note(painter, data);

// What the page's own canvas shows in this frame, undefined while there is none of a screen or window.
const read = () => {
    const at = now();
    const canvas = [...document.querySelectorAll("canvas")].find(isScreen);
    if (canvas === undefined) {
        return undefined;
    }
    const shown = words(canvas);
    return { at, sum: sumOf(shown), hasPicture: page.last?.hasPicture || isPicture(shown) };
};

// Looks at the next frame, and, if somebody wants to hear of each, at all.
let isDue = false;
const look = (each) => {
    if (isDue) {
        return;
    }
    isDue = true;
    requestAnimationFrame(() => {
        isDue = false;
        const reading = read();
        if (reading !== undefined) {
            note(page, reading);
        }
        if (each && page.hear !== undefined) {
            look(each);
        }
    });
};
const listen = (reader, hear) => {
    reader.hear = hear;
    if (reader === page && BY_WORKER && hear !== undefined) {
        look(true);
    }
};
if (!BY_WORKER) {
    for (const name of ["drawImage", "putImageData", "fillRect"]) {
        const draw = CanvasRenderingContext2D.prototype[name];
        CanvasRenderingContext2D.prototype[name] = function (...how) {
            draw.apply(this, how);
            if (page.hear !== undefined && this.canvas.isConnected) {
                look(false);
            }
        };
    }
}

const main = BY_WORKER ? painter : page;
globalThis.first = undefined;
listen(main, ({ at, hasPicture }) => {
    if (hasPicture) {
        globalThis.first ??= at - performance.timeOrigin;
        listen(main, undefined);
    }
});

// What changes sooner than `floor` after the key is no answer to it, but the end of the one before: `early` counts
// that. A key that nothing answers is late by null.
const answerOf = (reader, floor, pressed) => new Promise((resolve) => {
    let before = reader === page ? read()?.sum : reader.last?.sum;
    let early = 0;
    const end = (late) => {
        clearInterval(timer);
        listen(reader, undefined);
        resolve({ late, early });
    };
    const timer = setInterval(() => now() - pressed() > PATIENCE && end(null), 100);
    listen(reader, ({ at, sum }) => {
        const late = at - pressed();
        if (sum !== before && late >= floor) {
            end(late);
        } else {
            early += sum !== before && late < floor;
            before = sum;
        }
    });
});

// `both`: as the page itself sees it, too, though a worker paints.
globalThis.ready = (floor, both) => {
    let pressed;
    addEventListener("keydown", () => { pressed = now(); }, { capture: true, once: true });
    const answers = (both ? [main, page] : [main]).map((reader) => answerOf(reader, floor, () => pressed));
    globalThis.answer = Promise.all(answers);
};

// When frames with other pixels were painted during so many milliseconds.
globalThis.frames = (time) => new Promise((resolve) => {
    const frames = [];
    let before = main.last?.sum;
    listen(main, ({ at, sum }) => {
        if (sum !== before) {
            frames.push(at);
            before = sum;
        }
    });
    setTimeout(() => {
        listen(main, undefined);
        resolve(frames);
    }, time);
});

// Whether the worker that paints is to look at what it has painted: that takes of the processor what is not the page's.
globalThis.look = (whether) => channel.postMessage(whether);

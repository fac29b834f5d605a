// In each page from its beginning. `first` becomes when its canvas first showed something; after `ready(floor)`, `answer`
// becomes how late the next key is seen. All in milliseconds of the page's own clock, whenever it draws a frame.
(() => {
    const PATIENCE = 5000;
    // Rows of pixels that are looked at: more than what is typed fills.
    const ROWS = 128;
    let context;

    // What those rows show, undefined while there is no canvas of a screen or window.
    const words = () => {
        const canvas = [...document.querySelectorAll("canvas")].find((one) => one.width * one.height > 100000);
        if (canvas === undefined) {
            return undefined;
        }
        if (context?.canvas.width !== canvas.width) {
            context = new OffscreenCanvas(canvas.width, ROWS).getContext("2d", { willReadFrequently: true });
        }
        context.clearRect(0, 0, canvas.width, ROWS);
        context.drawImage(canvas, 0, 0);
        return new Uint32Array(context.getImageData(0, 0, canvas.width, ROWS).data.buffer);
    };
    const sum = () => words()?.reduce((sum, word) => (Math.imul(sum, 31) + word) | 0, 0);

    globalThis.first = undefined;
    const look = () => {
        const [one, ...others] = new Set(words());
        // More than one colour, within the canvas.
        if (one !== undefined && others.some((word) => word !== 0)) {
            globalThis.first = performance.now();
        } else {
            requestAnimationFrame(look);
        }
    };
    requestAnimationFrame(look);

    // What changes sooner than `floor` after the key is no answer to it, but the end of the one before: `early` counts
    // that. A key that nothing answers is late by null.
    globalThis.ready = (floor) => {
        let pressed;
        let before = sum();
        let early = 0;
        const press = () => { pressed = performance.now(); };
        addEventListener("keydown", press, { capture: true, once: true });
        globalThis.answer = new Promise((resolve) => {
            const look = () => {
                const seen = sum();
                const late = performance.now() - pressed;
                if (late > PATIENCE) {
                    resolve({ late: null, early });
                } else if (late >= floor && seen !== before) {
                    resolve({ late, early });
                } else {
                    early += late < floor && seen !== before;
                    before = seen;
                    requestAnimationFrame(look);
                }
            };
            requestAnimationFrame(look);
        });
    };
})();

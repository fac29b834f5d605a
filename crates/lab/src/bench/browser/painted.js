// In a worker that paints, from its beginning: tells what each frame shows that it has painted, in that frame. It asks
// for no frame itself: a worker that always asks for the next one is given none in between, as this page's is.
const canvases = [];
addEventListener("message", ({ data }) => {
    if (data?.canvas instanceof OffscreenCanvas) {
        canvases.push(data.canvas);
    }
});

// Opened with the first frame: Chromium crashes where a worker has a channel before its own script.
let channel;
let isLooking = true;
const open = () => {
    channel = new BroadcastChannel("painted");
    channel.onmessage = ({ data }) => { isLooking = data; };
};

let last;
let hasPicture = false;
const look = () => {
    const at = now();
    const canvas = canvases.find(isScreen);
    if (!isLooking || canvas === undefined) {
        return;
    }
    const read = words(canvas);
    const sum = sumOf(read);
    hasPicture ||= isPicture(read);
    if (sum !== last) {
        last = sum;
        channel.postMessage({ at, sum, hasPicture });
    }
};

const { requestAnimationFrame } = globalThis;
globalThis.requestAnimationFrame = (paint) => {
    channel ?? open();
    return requestAnimationFrame.call(globalThis, (time) => {
        paint(time);
        look();
    });
};

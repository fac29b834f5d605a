//! What an app side says to a page, and what a script asks the page for.
//!
//! Input: operations, each a byte that says which, then what it needs: 0 a message (two bytes length, the message),
//! 1 an update (surface, number, width − 1, height − 1, format, whether it is fresh, then length and bytes of one
//! chunk), 2 the page draws, 3 so much time passes (in 20 ms), 4 another program takes its number, 5 another page takes
//! its place, as a display; and what the user of that does, each with the surface that it is about and two numbers: 6
//! works in the window, 7 moves the pointer, 8 a button, 9 a wheel, 10 a key, 11 text, 12 another area, 13 all goes up.
//! Of sound: 14 the page listens (a track; to none that is unknown), 15 a packet comes (two bytes length, the packet),
//! 16 packets in a datagram (the same), 17 the browser has decoded the packet with this number: so many frames, 18 it
//! has failed to, 19 the loudspeaker asks (held, spare and missed frames, in 128ths). Of the clipboard: 20 the user
//! pastes (1 a picture, 2 what is new; then a byte of it), 21 what a program has copied was collected (its pipe; 1 if
//! it was whole). Of videos: 22 the browser has decoded what it was given, or not (two bits: the first two the layout,
//! 2 not, 3 with planes of another size; and the number of a frame).

use bytes::Bytes;
use wayferry_audio::{CHANNELS, Codec};
use wayferry_message::WireId;
use wayferry_page::{Area, Clip, Inside, Level, Node, Page, Role, Transfer, Wheel, rgba};
use wayferry_page_wasm::sound::{Ask, MAX_LEAD, Sound};
use wayferry_proto::{ConnectionId, SurfaceId, Time, UpdateHeader, UpdateSeq};
use wayferry_video::Layout;

use crate::Input;

const PROGRAM: ConnectionId = ConnectionId(1);

/// What is kept at most, by the limits.
const MOST: usize = (1 << 30) + (384 << 20) + 2 * (32 << 20) + (64 << 20) + (640 << 20) + 100 * 512;

/// A page bears it all, and gives everything back in the end.
///
/// # Panics
/// When it does not.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (mut page, mut now) = (Page::new(Role::View), Time::ZERO);
    page.open(PROGRAM).expect("room");
    let mut sound = Sound::default();
    while !input.is_empty() {
        match input.u8() % 23 {
            0 => {
                let length = input.u16().into();
                page.on_message(now, PROGRAM, input.take(length));
            }
            1 => update(&mut page, now, &mut input),
            2 => draw(&mut page),
            3 => {
                now += std::time::Duration::from_millis(20) * u32::from(input.u8());
                page.on_timeout(now);
            }
            4 => page.open(PROGRAM).expect("room"),
            5 => {
                page = Page::new(Role::Control);
                page.open(PROGRAM).expect("room");
            }
            20 => paste(&mut page, &mut input),
            21 => {
                let pipe = input.u8().into();
                let bytes = (input.u8() & 1 == 1).then(|| Bytes::from_static(b"copied"));
                page.on_collected((PROGRAM, pipe), bytes);
            }
            22 => decode(&mut page, now, &mut input),
            which @ 14.. => hear(&mut sound, now, which, &mut input),
            which => use_it(&mut page, now, which, &mut input),
        }
        while page.poll_message().is_some() {}
        while page.poll_blob().is_some() {}
        while let Some(transfer) = page.poll_transfer() {
            check(&transfer);
        }
        let _ = page.poll_copied();
        assert!(page.kept() <= MOST);
    }
    draw(&mut page);
    page.close(PROGRAM);
    // What decoders owe is kept until they have failed.
    page.on_timeout(now + std::time::Duration::from_secs(1));
    assert_eq!(page.kept(), 0);
}

/// What becomes of frames of videos.
fn decode(page: &mut Page, now: Time, input: &mut Input<'_>) {
    while page.poll_task().is_some() {}
    let (which, number) = (input.u8() % 4, input.u8().into());
    match which {
        0 => page.on_decoded(now, number, Layout::I420, vec![number as u8; PLANES]),
        1 => page.on_decoded(now, number, Layout::Nv12, vec![number as u8; PLANES]),
        2 => page.on_undecodable(now, number),
        _ => page.on_decoded(now, number, Layout::I420, vec![0; number as usize]),
    }
}

/// Of the smallest picture that there is.
const PLANES: usize = 16 * 16 * 3 / 2;

/// The user pastes something.
fn paste(page: &mut Page, input: &mut Input<'_>) {
    let (which, bytes) = (input.u8(), Bytes::copy_from_slice(&[input.u8()]));
    page.offer(if which & 1 == 1 { Clip::Picture(bytes) } else { Clip::Text(bytes) }, which & 2 == 2);
}

/// Programs write through the page's pipes and read from their own.
fn check(transfer: &Transfer) {
    let (from, to) = match transfer {
        Transfer::Send { to, .. } => (None, Some(to)),
        Transfer::Relay { from, to } => (Some(from), Some(to)),
        Transfer::Collect { from, .. } => (Some(from), None),
    };
    assert!(from.is_none_or(|(_, pipe)| pipe & 1 == 1) && to.is_none_or(|(_, pipe)| pipe & 1 == 0));
}

/// What comes of sound, and what a script does with it.
fn hear(sound: &mut Sound, now: Time, which: u8, input: &mut Input<'_>) {
    match which {
        14 => sound.listen(Codec::of_track(input.u8())),
        15 | 16 => {
            let length = input.u16().into();
            let bytes = input.take(length);
            if which == 15 { sound.on_packet(now, bytes) } else { sound.on_datagram(now, bytes) }
        }
        17 => {
            let number = input.u8().into();
            sound.decoder().decoded(number, &vec![0.5; usize::from(input.u8()) * 8 * CHANNELS]);
        }
        18 => sound.decoder().failed(),
        _ => {
            let [held, spare, missed] = [(); 3].map(|()| u32::from(input.u8()) * 128);
            sound.ask(now, Ask { held, spare, missed, latency: std::time::Duration::ZERO });
        }
    }
    while sound.poll_encoded().is_some() {}
    if let Some(answer) = sound.answer(now) {
        assert!(answer.len() <= MAX_LEAD * 480 * CHANNELS);
        assert!(answer.iter().all(|sample| sample.abs() <= 1.0), "louder than anything");
    }
}

/// What a script says of the user.
fn use_it(page: &mut Page, now: Time, which: u8, input: &mut Input<'_>) {
    let (surface, x, y) = (WireId(input.u8().into()), input.u8(), input.u8());
    let pressed = y & 1 != 0;
    match which {
        6 => page.focus(Some((PROGRAM, surface))),
        7 => page.point(now, PROGRAM, surface, x.into(), y.into()),
        8 => page.button(now, x.into(), pressed),
        9 => page.wheel(now, Wheel { distance: [x, y].map(f64::from), steps: [y, x].map(i32::from) }),
        10 => page.key(now, x.into(), Level::Plain, Some(y.into()), pressed),
        11 => page.type_text(now, "a\u{6f22}\n"),
        12 => page.set_area(Area::new(x.into(), y.into(), 180)),
        _ => page.release(now),
    }
    let _ = page.cursor();
}

fn update(page: &mut Page, now: Time, input: &mut Input<'_>) {
    let header = UpdateHeader {
        connection: PROGRAM,
        surface: SurfaceId(input.u8().into()),
        seq: UpdateSeq(input.u8().into()),
        size: (u32::from(input.u8()) + 1, u32::from(input.u8()) + 1),
        format: input.u8() % 10,
        fresh: input.u8() & 1 != 0,
        covers: 0,
        unit: None,
    };
    let length = input.u8().into();
    page.on_update(now, &header, vec![Bytes::copy_from_slice(input.take(length))]);
}

/// What a script does: paints all that there is.
fn draw(page: &mut Page) {
    fn each(node: &Node<'_>) {
        node.shape.size(node.content.size());
        let pixels = rgba(node.content, node.content.size().rect());
        assert_eq!(pixels.len() as u64, node.content.size().rect().area() * 4);
        for inside in &node.inside {
            if let Inside::Child(child) = inside {
                each(child);
            }
        }
    }
    for (_, program) in page.programs() {
        program.windows().for_each(|window| each(&window.root));
    }
    page.on_frame(0);
}

//! Alpha modifiers of programs that began at a display without them.

use wayferry_pixels::Format;

use super::protocols::desk_with;
use super::*;

const HALF: u32 = u32::MAX / 2;

/// A window with an alpha modifier.
struct Faded {
    rig: Rig,
    surface: u32,
    shm: u32,
    manager: u32,
    modifier: u32,
}

impl Faded {
    fn new() -> Self {
        Self::at(&desk())
    }

    fn at(desk: &Rc<Desk>) -> Self {
        let mut rig = Rig::with_desk(desk);
        let (surface, _, _, shm) = rig.mapped();
        let manager = rig.bind("wp_alpha_modifier_v1");
        let modifier = rig.id("wp_alpha_modifier_surface_v1");
        rig.request(manager, "get_surface", vec![Arg::NewId(modifier), Arg::Object(surface)]);
        rig.units();
        Self { rig, surface, shm, manager, modifier }
    }

    fn set(&mut self, factor: u32) {
        self.rig.request(self.modifier, "set_multiplier", vec![Arg::Uint(factor)]);
    }

    /// What left with a commit: the unit and the first pixel of the content.
    fn commit(&mut self) -> (Unit, Vec<u8>) {
        self.rig.commit(self.surface);
        self.rig.now += FRAME;
        self.rig.flush(u64::MAX);
        let unit = self.rig.units().pop().expect("a unit");
        let painter = &self.rig.connection.surfaces[&self.surface].painter;
        assert!(!painter.has_news(), "all of it has left");
        let content = painter.content().unwrap();
        assert_eq!(content.format(), Format::Argb8888);
        (unit, content.pixels()[..4].to_vec())
    }

    fn draw(&mut self, pixel: [u8; 4], format: u32) {
        self.draw_square(4, pixel, format);
    }

    fn draw_square(&mut self, side: i32, pixel: [u8; 4], format: u32) {
        let pool = self.rig.id("wl_shm_pool");
        let size = side * side * 4;
        let bytes = pixel.repeat(size as usize / 4);
        self.rig.request(
            self.shm,
            "create_pool",
            vec![Arg::NewId(pool), Arg::Fd(file(&bytes)), Arg::Int(size)],
        );
        let buffer = self.rig.id("wl_buffer");
        let numbers = [0, side, side, side * 4].map(Arg::Int);
        let args = std::iter::once(Arg::NewId(buffer)).chain(numbers).chain([Arg::Uint(format)]);
        self.rig.request(pool, "create_buffer", args.collect());
        self.rig.attach(self.surface, buffer);
    }

    /// The last `set_opaque_region` of a unit.
    fn opaque(&self, unit: &Unit) -> Option<Vec<WireArg>> {
        let surface = self.rig.connection.surfaces[&self.surface].wire;
        let is_it = |request: &&Request| (request.object, request.opcode) == (surface, 4);
        unit.state.iter().find(is_it).map(|request| request.args.clone())
    }
}

#[test]
fn pixels_are_multiplied_where_the_compositor_cannot() {
    let mut faded = Faded::new();
    faded.draw([100, 50, 200, 200], 0);
    faded.set(HALF);
    let (unit, pixel) = faded.commit();
    assert_eq!(pixel, [50, 25, 100, 100]);
    assert!(matches!(unit.content, UnitContent::Update(_)) && unit.state.is_empty());
    let told = faded.rig.sent.iter().any(|message| format!("{message:?}").contains("alpha_modifier"));
    assert!(!told, "the display side hears nothing of it");
}

/// Also from nothing to be seen back to all of it.
#[test]
fn a_commit_that_changes_the_factor_alone_brings_all_pixels() {
    let mut faded = Faded::new();
    faded.draw([100, 50, 200, 200], 0);
    faded.commit();
    for (factor, pixel) in [
        (HALF, [50, 25, 100, 100]),
        (0, [0, 0, 0, 0]),
        (u32::MAX / 4 * 3, [75, 37, 150, 150]),
        (u32::MAX, [100, 50, 200, 200]),
    ] {
        faded.set(factor);
        let (unit, shown) = faded.commit();
        assert!(shown.iter().zip(pixel).all(|(a, b)| a.abs_diff(b) <= 1), "{shown:?}, expected {pixel:?}");
        assert!(matches!(unit.content, UnitContent::Update(_)));
    }
    assert_eq!(faded.rig.connection.surfaces[&faded.surface].content_bytes(), 64, "nothing is kept twice");
    let (unit, _) = faded.commit();
    assert_eq!(unit.content, UnitContent::Keep, "the factor is the same");
}

#[test]
fn content_without_alpha_gets_some() {
    for (format, pixel, shown) in [
        (1, [100, 50, 200, 7], [50, 25, 100, 127]),
        // xbgr8888
        (0x3432_4258, [200, 50, 100, 7], [50, 25, 100, 127]),
    ] {
        let mut faded = Faded::new();
        faded.draw(pixel, format);
        faded.set(HALF);
        assert_eq!(faded.commit().1, shown);
        faded.set(u32::MAX);
        faded.draw([1, 2, 3, 255], 0);
        assert_eq!(faded.commit().1, [1, 2, 3, 255]);
    }
}

#[test]
fn a_buffer_of_one_pixel_is_multiplied() {
    let mut faded = Faded::new();
    let manager = faded.rig.bind("wp_single_pixel_buffer_manager_v1");
    let buffer = faded.rig.id("wl_buffer");
    let args = std::iter::once(Arg::NewId(buffer)).chain([u32::MAX, 0, 0, u32::MAX].map(Arg::Uint));
    faded.rig.request(manager, "create_u32_rgba_buffer", args.collect());
    faded.rig.attach(faded.surface, buffer);
    faded.set(HALF);
    assert_eq!(faded.commit().1, [0, 0, 127, 127]);
}

#[test]
fn what_is_seen_through_is_not_opaque() {
    let mut faded = Faded::new();
    let compositor = faded.rig.bind("wl_compositor");
    let region = faded.rig.id("wl_region");
    faded.rig.request(compositor, "create_region", vec![Arg::NewId(region)]);
    let say = |faded: &mut Faded, width: i32| {
        faded.rig.request(region, "add", [0, 0, width, 4].map(Arg::Int).into());
        faded.rig.request(faded.surface, "set_opaque_region", vec![Arg::Object(region)]);
    };
    let ops = |told: Option<Vec<WireArg>>| match told.as_deref() {
        Some([WireArg::Region(ops)]) => ops.len(),
        other => panic!("{other:?}"),
    };
    let nothing = || Some(vec![WireArg::Object(WireId::NULL)]);
    say(&mut faded, 2);
    let (unit, _) = faded.commit();
    assert_eq!(ops(faded.opaque(&unit)), 1);
    faded.set(HALF);
    let (unit, _) = faded.commit();
    assert_eq!(faded.opaque(&unit), nothing());
    say(&mut faded, 3);
    let (unit, _) = faded.commit();
    assert_eq!(faded.opaque(&unit), nothing());
    // Another display is told the same.
    faded.rig.detach();
    faded.rig.attach_to(&desk());
    faded.set(u32::MAX);
    faded.rig.commit(faded.surface);
    let pending = &faded.rig.connection.surfaces[&faded.surface].waiting.unsent();
    let state = pending.as_ref().unwrap().state.iter().find(|(request, _)| request.opcode == 4);
    assert_eq!(ops(state.map(|(request, _)| request.args.clone())), 2, "the last one that it said");
}

#[test]
fn without_its_modifier_a_surface_is_as_it_was_drawn() {
    let mut faded = Faded::new();
    faded.draw([100, 50, 200, 200], 0);
    faded.set(HALF);
    faded.commit();
    faded.rig.request(faded.modifier, "destroy", vec![]);
    assert_eq!(faded.commit().1, [100, 50, 200, 200]);
    // It may have another.
    let modifier = faded.rig.id("wp_alpha_modifier_surface_v1");
    faded.rig.request(faded.manager, "get_surface", vec![Arg::NewId(modifier), Arg::Object(faded.surface)]);
    faded.rig.request(modifier, "set_multiplier", vec![Arg::Uint(HALF)]);
    assert_eq!(faded.commit().1, [50, 25, 100, 100]);
    assert_eq!(faded.rig.connection.end(), None);
}

#[test]
fn a_second_modifier_and_one_without_a_surface_are_errors() {
    let mut faded = Faded::new();
    let second = faded.rig.id("wp_alpha_modifier_surface_v1");
    faded.rig.request(faded.manager, "get_surface", vec![Arg::NewId(second), Arg::Object(faded.surface)]);
    assert_eq!(faded.rig.error(), Some((faded.manager, 0)));
    let mut rig = Rig::new();
    let (compositor, manager) = (rig.bind("wl_compositor"), rig.bind("wp_alpha_modifier_v1"));
    let (surface, modifier) = (rig.surface(compositor), rig.id("wp_alpha_modifier_surface_v1"));
    rig.request(manager, "get_surface", vec![Arg::NewId(modifier), Arg::Object(surface)]);
    rig.request(surface, "destroy", vec![]);
    rig.request(modifier, "set_multiplier", vec![Arg::Uint(1)]);
    assert_eq!(rig.error(), Some((modifier, 0)));
}

#[test]
fn no_display_multiplies_what_was_multiplied_here_and_here_nothing_that_it_multiplies() {
    let able = desk_with(&[("wp_alpha_modifier_v1", 1)]);
    let mut faded = Faded::new();
    faded.draw([100, 50, 200, 200], 0);
    faded.set(HALF);
    faded.commit();
    faded.rig.detach();
    let told = faded.rig.attach_to(&able);
    assert!(told.iter().all(|told| !told.contains("alpha_modifier")), "{told:?}");
    let content = |faded: &Faded| {
        let content = faded.rig.connection.surfaces[&faded.surface].painter.content().unwrap();
        content.pixels()[..4].to_vec()
    };
    assert_eq!(content(&faded), [50, 25, 100, 100]);
    let mut faded = Faded::at(&able);
    faded.draw([100, 50, 200, 200], 0);
    faded.set(HALF);
    let (unit, pixel) = faded.commit();
    assert_eq!(pixel, [100, 50, 200, 200]);
    let modifier = faded.rig.connection.objects.wire(faded.modifier).unwrap();
    assert!(unit.state.iter().any(|request| request.object == modifier), "{:?}", unit.state);
}

/// As much as a window without one, and once more while it is faded.
/// Each costs as much as new content of that size.
#[test]
fn regression_two_small_requests_have_all_pixels_made_anew_without_end() {
    let mut faded = Faded::new();
    faded.draw_square(1024, [1, 2, 3, 255], 0);
    faded.rig.commit(faded.surface);
    let leave = |rig: &mut Rig| {
        for _ in 0..100 {
            rig.now += FRAME;
            rig.flush(u64::MAX);
        }
        rig.connection.stalled()
    };
    assert!(!leave(&mut faded.rig));
    faded.set(HALF);
    faded.rig.commit(faded.surface);
    assert!(faded.rig.connection.stalled(), "the others have their turn first");
    assert!(!leave(&mut faded.rig));
}

#[test]
fn regression_a_faded_commit_takes_twice_the_room_that_it_was_given() {
    let mut faded = Faded::new();
    faded.set(HALF);
    faded.draw([1, 2, 3, 255], 0);
    faded.commit();
    faded.rig.connection.room.limit(200);
    // Of 144 bytes twice.
    faded.draw_square(6, [1, 2, 3, 255], 0);
    faded.rig.commit(faded.surface);
    let surface = &faded.rig.connection.surfaces[&faded.surface];
    assert_eq!(surface.content_bytes(), 128, "it waits");
    assert!(faded.rig.connection.room.crowds_out(surface));
}

#[test]
fn what_is_kept_of_a_faded_surface_is_counted() {
    let mut faded = Faded::new();
    faded.rig.connection.room.limit(64);
    faded.set(HALF);
    faded.commit();
    assert_eq!(faded.rig.connection.surfaces[&faded.surface].content_bytes(), 128);
    faded.rig.connection.room.limit(63);
    faded.set(u32::MAX);
    faded.commit();
    assert_eq!(faded.rig.connection.end(), None, "it takes less now");
    faded.set(HALF);
    faded.rig.commit(faded.surface);
    assert!(faded.rig.connection.end().is_some(), "more than twice");
}

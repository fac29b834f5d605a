//! What a random program does: one operation after another, made from a seed.
//!
//! An operation names places of surfaces, not objects, and any list of operations is a program: what makes no sense
//! where it stands is left out by the program that carries it out. So a program that fails can be made shorter by
//! leaving operations out.

/// Places for surfaces.
pub(crate) const PLACES: usize = 6;

/// One thing that happens. Numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    /// The program binds the versions that an old toolkit knows, whenever this stands.
    Old,
    /// A surface without a role, or what was there goes with all that is above it.
    Create(usize),
    Toplevel(usize),
    /// A popup of a mapped window or popup, with a grab if a button is down.
    Popup {
        place: usize,
        parent: usize,
        grab: bool,
    },
    Child {
        place: usize,
        parent: usize,
    },
    /// New pixels in part of a buffer of this size, or the last size.
    Paint {
        place: usize,
        size: Option<(u8, u8)>,
        rect: [u8; 4],
        damage: Damage,
        xrgb: bool,
    },
    /// A buffer of one pixel.
    Pixel {
        place: usize,
        colour: u32,
    },
    /// The buffer that was shown last, moved.
    Offset {
        place: usize,
        by: (i8, i8),
    },
    Commit(usize),
    /// A null buffer, and with it all that is pending.
    Unmap(usize),
    Scale(usize, u8),
    Transform(usize, u8),
    Source(usize, Option<[u8; 4]>),
    Destination(usize, Option<(u8, u8)>),
    DestroyViewport(usize),
    Opaque(usize, u8),
    InputRegion(usize, u8),
    Geometry(usize, [u8; 4]),
    Limits(usize, (u8, u8)),
    Frame(usize),
    Position(usize, (i8, i8)),
    Place {
        place: usize,
        sibling: usize,
        above: bool,
    },
    Sync(usize, bool),
    /// The role goes, of popups above it first.
    DestroyRole(usize),
    /// The surface goes with its role; of a subsurface in either order.
    DestroySurface {
        place: usize,
        role_first: bool,
    },
    /// All surfaces' roles first, then the surfaces, with what is above.
    DestroyAll(usize),
    DestroyBuffers(usize),
    Title(usize, u8),
    AppId(usize, u8),
    Parent(usize, Option<usize>),
    State(usize, u8),
    Reposition(usize, u8),
    /// The pointer goes into a window and gets a picture there.
    Cursor {
        place: usize,
        window: usize,
    },
    Selection(u8),
    /// The compositor wants another size; the program answers with its next commit.
    Configure(usize, (u8, u8)),
    Dismiss(usize),
    /// The user does something while the program goes on.
    Do(Deed),
    /// The pointer goes into a window and presses a button; the program has heard of it.
    Press(usize),
    /// The clipboard belongs to another program.
    Copied(u8),
    Output(u8),
    Pass(u8),
    /// Everything arrives and is shown.
    Settle,
}

/// How a program says what it painted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Damage {
    Buffer,
    Surface,
    Everything,
}

/// What a user does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Deed {
    KeyFocus(u8),
    Key(u8, bool),
    PointerFocus(u8),
    Motion(u8, u8),
    Button(bool),
    Axis(i8),
    Touch(u8, bool),
}

/// Where the decisions come from that make a program.
pub(crate) trait Choices {
    /// Below `end`, which is 256 at most.
    fn below(&mut self, end: usize) -> usize;

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    /// In one of so many cases.
    fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }

    fn place(&mut self) -> usize {
        self.below(PLACES)
    }

    fn small(&mut self) -> (i8, i8) {
        let mut number = || self.below(17) as i8 - 8;
        (number(), number())
    }
}

/// Numbers from a seed: splitmix64.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Choices for Dice {
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn word(&mut self) -> u32 {
        self.next() as u32
    }
}

/// The program of a seed: a window first, with something in it, then any operations.
pub(crate) fn program(seed: u64) -> Vec<Op> {
    let mut dice = Dice::new(seed);
    let length = 8 + dice.below(56);
    // Half of all programs never desynchronise a child: what they show is judged as a whole.
    let plain = dice.one_in(2);
    let mut program = if dice.one_in(4) { vec![Op::Old] } else { vec![] };
    program.extend([Op::Create(0), Op::Toplevel(0), paint(&mut dice, 0), Op::Commit(0)]);
    while program.len() < length {
        step(&mut dice, plain, &mut program);
    }
    program
}

/// What programs do in one go; one that is plain never desynchronises a child.
pub(crate) fn step(choices: &mut impl Choices, plain: bool, program: &mut Vec<Op>) {
    match choices.below(10) {
        0 | 1 => begin(choices, program),
        2..=5 => {
            let place = choices.place();
            for _ in 0..choices.below(3) {
                program.push(state(choices, place, plain));
            }
            program.push(match choices.below(12) {
                0 => Op::Unmap(place),
                1 => Op::Pixel { place, colour: choices.word() },
                2 => Op::Offset { place, by: choices.small() },
                3 => Op::Frame(place),
                _ => paint(choices, place),
            });
            program.push(Op::Commit(place));
        }
        6 => program.push(Op::Commit(choices.place())),
        7 => {
            let place = choices.place();
            program.push(state(choices, place, plain));
        }
        8 => program.push(rare(choices)),
        _ => program.push(outside(choices)),
    }
}

/// Any operation, also one that no program would choose.
pub(crate) fn single(choices: &mut impl Choices) -> Op {
    let place = choices.place();
    match choices.below(12) {
        0 => Op::Create(place),
        1 => Op::Toplevel(place),
        2 => Op::Popup { place, parent: choices.place(), grab: choices.one_in(2) },
        3 => Op::Child { place, parent: choices.place() },
        4 => paint(choices, place),
        5 => Op::Pixel { place, colour: choices.word() },
        6 => Op::Offset { place, by: choices.small() },
        7 => Op::Commit(place),
        8 => Op::Frame(place),
        9 => state(choices, place, false),
        10 => rare(choices),
        _ => outside(choices),
    }
}

fn paint(choices: &mut impl Choices, place: usize) -> Op {
    let size = choices.one_in(3).then(|| (choices.byte(), choices.byte()));
    let damage = [Damage::Buffer, Damage::Surface, Damage::Everything][choices.below(3)];
    Op::Paint { place, size, rect: choices.bytes(), damage, xrgb: choices.one_in(4) }
}

/// A surface, its role and its first content, in one order or another.
fn begin(choices: &mut impl Choices, program: &mut Vec<Op>) {
    let (place, parent) = (choices.place(), choices.below(3));
    let role = match choices.below(5) {
        0 => Op::Toplevel(place),
        1 => Op::Popup { place, parent, grab: choices.one_in(2) },
        _ => Op::Child { place, parent },
    };
    program.push(Op::Create(place));
    if choices.one_in(4) && matches!(role, Op::Child { .. }) {
        program.extend([paint(choices, place), Op::Commit(place), role]);
    } else {
        program.push(role);
        if choices.one_in(3) {
            program.push(Op::Position(place, choices.small()));
        }
        program.extend([paint(choices, place), Op::Commit(place)]);
    }
    if choices.one_in(2) {
        program.push(Op::Commit(parent));
    }
}

/// State of a surface that waits for a commit, of it or its parent, or none.
fn state(choices: &mut impl Choices, place: usize, plain: bool) -> Op {
    match choices.below(17) {
        0 | 1 => Op::Scale(place, choices.byte()),
        2 | 3 => Op::Transform(place, choices.byte()),
        4 => Op::Source(place, (!choices.one_in(3)).then(|| choices.bytes())),
        5 | 6 => Op::Destination(place, (!choices.one_in(3)).then(|| (choices.byte(), choices.byte()))),
        7 => Op::DestroyViewport(place),
        8 => Op::Opaque(place, choices.byte()),
        9 => Op::InputRegion(place, choices.byte()),
        10 => Op::Geometry(place, choices.bytes()),
        11 => Op::Limits(place, (choices.byte(), choices.byte())),
        12 | 13 => Op::Position(place, choices.small()),
        14 | 15 => Op::Place { place, sibling: choices.place(), above: choices.one_in(2) },
        _ => Op::Sync(place, plain || choices.one_in(2)),
    }
}

/// Roles and surfaces go, and what has no commit.
fn rare(choices: &mut impl Choices) -> Op {
    let place = choices.place();
    match choices.below(14) {
        0 => Op::DestroyRole(place),
        1 | 2 => Op::DestroySurface { place, role_first: choices.one_in(2) },
        3 => Op::DestroyAll(place),
        4 => Op::DestroyBuffers(place),
        5 | 6 => Op::Title(place, choices.byte()),
        7 => Op::AppId(place, choices.byte()),
        8 => Op::Parent(place, (!choices.one_in(3)).then(|| choices.place())),
        9 => Op::State(place, choices.byte()),
        10 => Op::Reposition(place, choices.byte()),
        11 => Op::Cursor { place, window: choices.below(2) },
        12 => Op::Selection(choices.byte()),
        _ => Op::Unmap(place),
    }
}

/// What the user, the compositor and time do.
fn outside(choices: &mut impl Choices) -> Op {
    match choices.below(12) {
        0 => Op::Configure(choices.place(), (choices.byte(), choices.byte())),
        1 => Op::Dismiss(choices.place()),
        2 => Op::Press(choices.place()),
        3 => Op::Copied(choices.byte()),
        4 => Op::Output(choices.byte()),
        5 => Op::Settle,
        6 | 7 => Op::Pass(choices.byte()),
        _ => Op::Do(match choices.below(9) {
            0 => Deed::KeyFocus(choices.byte()),
            1..=3 => Deed::Key(choices.byte() % 8, choices.one_in(2)),
            4 => Deed::PointerFocus(choices.byte()),
            5 => Deed::Motion(choices.byte(), choices.byte()),
            6 => Deed::Button(choices.one_in(2)),
            7 => Deed::Axis(choices.byte() as i8),
            _ => Deed::Touch(choices.byte(), choices.one_in(2)),
        }),
    }
}

//! Where a channel is heard, and how loud on each of the two sides.
//!
//! The weights are those of ITU-R BS.775: what is in the middle or behind is heard 3 dB lower on the sides that it
//! reaches; low frequencies 6 dB lower on both. Weights are not lowered further so that no sum clips: a film in six
//! channels would be too quiet, and hardly one has all channels loud at once.

use std::f32::consts::FRAC_1_SQRT_2;

use pulseaudio::protocol::ChannelMap;
use pulseaudio::protocol::ChannelPosition::{self, *};

/// The weights of a channel on the left and on the right.
pub(crate) fn weights(place: ChannelPosition) -> [f32; 2] {
    match place {
        Mono => [1.0, 1.0],
        FrontLeft => [1.0, 0.0],
        FrontRight => [0.0, 1.0],
        FrontLeftOfCenter | TopFrontLeft | SideLeft | RearLeft | TopRearLeft => [FRAC_1_SQRT_2, 0.0],
        FrontRightOfCenter | TopFrontRight | SideRight | RearRight | TopRearRight => [0.0, FRAC_1_SQRT_2],
        FrontCenter | TopFrontCenter | TopCenter => [FRAC_1_SQRT_2; 2],
        Lfe | RearCenter | TopRearCenter => [0.5, 0.5],
        // Without a place: every other one to each side.
        auxiliary if (auxiliary as u8 - Aux0 as u8).is_multiple_of(2) => [1.0, 0.0],
        _ => [0.0, 1.0],
    }
}

/// The places of so many channels when a program does not say them: those of WAVE files.
pub(crate) fn usual(channels: usize) -> Vec<ChannelPosition> {
    match channels {
        1 => vec![Mono],
        4 => vec![FrontLeft, FrontRight, RearLeft, RearRight],
        _ => {
            let order = [FrontLeft, FrontRight, FrontCenter, Lfe, RearLeft, RearRight, SideLeft, SideRight];
            order.into_iter().take(channels).collect()
        }
    }
}

/// Places by their names, with commas between; `None` if one is unknown or there are too many.
pub(crate) fn map(names: &str) -> Option<ChannelMap> {
    let places: Option<Vec<_>> = names.split(',').take(MOST + 1).map(named).collect();
    places.filter(|places| places.len() <= MOST).map(ChannelMap::new)
}

/// The name of a place.
pub(crate) fn name(place: ChannelPosition) -> String {
    match NAMES.iter().find(|(one, _)| *one == place) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("aux{}", place as u8 - Aux0 as u8),
    }
}

fn named(name: &str) -> Option<ChannelPosition> {
    if let Some((place, _)) = NAMES.iter().find(|(_, one)| *one == name) {
        return Some(*place);
    }
    let number: usize = name.strip_prefix("aux")?.parse().ok()?;
    AUXILIARY.get(number).copied()
}

/// More places than a stream may have: the crate's maps hold 32.
const MOST: usize = 32;

const NAMES: [(ChannelPosition, &str); 19] = [
    (Mono, "mono"),
    (FrontLeft, "front-left"),
    (FrontRight, "front-right"),
    (FrontCenter, "front-center"),
    (RearCenter, "rear-center"),
    (RearLeft, "rear-left"),
    (RearRight, "rear-right"),
    (Lfe, "lfe"),
    (FrontLeftOfCenter, "front-left-of-center"),
    (FrontRightOfCenter, "front-right-of-center"),
    (SideLeft, "side-left"),
    (SideRight, "side-right"),
    (TopCenter, "top-center"),
    (TopFrontLeft, "top-front-left"),
    (TopFrontRight, "top-front-right"),
    (TopFrontCenter, "top-front-center"),
    (TopRearLeft, "top-rear-left"),
    (TopRearRight, "top-rear-right"),
    (TopRearCenter, "top-rear-center"),
];

const AUXILIARY: [ChannelPosition; 32] = [
    Aux0, Aux1, Aux2, Aux3, Aux4, Aux5, Aux6, Aux7, Aux8, Aux9, Aux10, Aux11, Aux12, Aux13, Aux14, Aux15,
    Aux16, Aux17, Aux18, Aux19, Aux20, Aux21, Aux22, Aux23, Aux24, Aux25, Aux26, Aux27, Aux28, Aux29, Aux30,
    Aux31,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_lead_back_to_their_places() {
        for place in NAMES.iter().map(|(place, _)| *place).chain(AUXILIARY) {
            assert_eq!(named(&name(place)), Some(place));
        }
        assert_eq!(named("aux32"), None);
        assert_eq!(map(&"mono,".repeat(1000)), None);
    }

    #[test]
    fn both_sides_are_alike() {
        for channels in [1, 2, 4, 6, 8] {
            let weights: Vec<_> = usual(channels).into_iter().map(weights).collect();
            let side = |side: usize| weights.iter().map(|each| each[side]).sum::<f32>();
            assert_eq!(side(0), side(1), "{channels} channels");
        }
        assert_eq!([weights(Aux0), weights(Aux1), weights(Aux31)], [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]);
    }
}

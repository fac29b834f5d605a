//! Uses what a client sent, as far as it reads its answers.

use super::client::ClientId;
use super::commands;
use super::frame::Piece;
use super::state::State;

/// Uses what a client sent, until it leaves too much unread.
pub(crate) fn read(state: &mut State, id: ClientId) {
    let Some(client) = state.clients.get_mut(&id) else { return };
    let mut input = std::mem::take(&mut client.input);
    while state.clients.get(&id).is_some_and(|client| client.end.is_none() && !client.output.is_full()) {
        match input.piece() {
            Ok(None) => break,
            Ok(Some(Piece::Command(command))) => commands::answer(state, id, command),
            Ok(Some(Piece::Sound(sound))) => state.sound(id, &sound),
            Err(why) => state.end(id, why),
        }
    }
    if let Some(client) = state.clients.get_mut(&id).filter(|client| client.end.is_none()) {
        client.input = input;
    }
}

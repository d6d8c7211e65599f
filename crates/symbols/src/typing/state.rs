//! Registers and the frame, as far as their types are known.

use std::collections::BTreeMap;

use crate::debug::Debug;
use crate::debug::index::EntryId;
use crate::instruction::{REGISTERS, Register};

/// A variable's name, by its number in the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableName(pub u32);

/// A value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Value {
    #[default]
    Unknown,
    /// A pointer to something without a type.
    Untyped,
    /// The address of static memory where no variable lies: of constants, and of tables of jumps.
    Static,
    /// A number, as far as its remainder says: an unknown multiple of the first one, which is 0 where
    /// the number is known and else 2 or more, and the second one besides. The second one is the
    /// number itself, or from 0 on and below the first one.
    Number(u64, i64),
    /// The address of an object of this type, bytes from its beginning, and a number of which an
    /// unknown multiple is added, as in an array that is a member; 0 if nothing is. The object is a
    /// variable, if that is known.
    Into(EntryId, i64, u64, Option<VariableName>),
    /// The address of the thread's own memory, and bytes from it on.
    Thread(i64),
    /// An address in the frame: bytes from the canonical address, which is where the caller's frame
    /// ends.
    Frame(i64),
}

impl Value {
    /// A number that is a multiple of `of` and `rest` besides.
    pub fn number(of: u64, rest: i64) -> Value {
        match i64::try_from(of) {
            Ok(0) => Value::Number(0, rest),
            Ok(1) | Err(_) => Value::Unknown,
            Ok(signed) => Value::Number(of, rest.rem_euclid(signed)),
        }
    }

    /// The multiple and the rest that it is as a number: any number is a multiple of 1.
    pub fn parts(self) -> (u64, i64) {
        if let Value::Number(of, rest) = self { (of, rest) } else { (1, 0) }
    }

    /// The sum of two numbers.
    pub fn plus(self, other: Value) -> Value {
        let ((of, rest), (other, more)) = (self.parts(), other.parts());
        Value::number(common(of, other), rest.wrapping_add(more))
    }

    /// A number times another one that is known.
    pub fn times(self, factor: i64) -> Value {
        let (of, rest) = self.parts();
        match (of.checked_mul(factor.unsigned_abs()), rest.checked_mul(factor)) {
            (Some(of), Some(rest)) => Value::number(of, rest),
            _ => Value::Unknown,
        }
    }

    /// The power of two that divides it.
    pub fn zeros(self) -> u32 {
        let (of, rest) = self.parts();
        of.trailing_zeros().min(rest.trailing_zeros())
    }

    /// The facts that both have.
    pub fn meet(self, other: Value, debug: &Debug) -> Value {
        match (self, other) {
            (one, other) if one == other => one,
            // A number that a loop adds to. What it is a multiple of only shrinks, too.
            (Value::Number(one, rest), Value::Number(other, more)) => {
                Value::number(common(common(one, other), rest.abs_diff(more)), rest)
            }
            // A pointer that may be null.
            (Value::Number(0, 0), pointer) | (pointer, Value::Number(0, 0)) => pointer,
            (Value::Into(kind, at, stride, of), Value::Into(other, there, step, named)) => {
                // A pointer that a loop moves. The stride only shrinks, so this comes to an end.
                if debug.is_same(kind, other) {
                    // One that begins at a variable's end, or moves to it, may be another's.
                    let bytes = debug.type_facts(kind).map_or(0, |facts| facts.bytes as i64);
                    let is_inside = (0..bytes).contains(&at) && (0..bytes).contains(&there);
                    let of = of.filter(|of| named == Some(*of) && is_inside);
                    return Value::Into(kind, at, common(common(stride, step), at.abs_diff(there)), of);
                }
                match (stride, step) {
                    (0, 0) if is_part(debug, (kind, at), (other, there)) => {
                        Value::Into(other, there, 0, None)
                    }
                    (0, 0) if is_part(debug, (other, there), (kind, at)) => Value::Into(kind, at, 0, None),
                    _ => Value::Unknown,
                }
            }
            _ => Value::Unknown,
        }
    }
}

/// Returns whether a pointer into an object of one type is one into an object of another type that the
/// first one has as a member, or begins with.
pub fn is_part(debug: &Debug, (outer, offset): (EntryId, i64), (inner, at): (EntryId, i64)) -> bool {
    debug.holds(outer, offset.wrapping_sub(at), inner) || (offset == at && debug.begins_like(outer, inner))
}

/// The greatest number that divides both; 0 is divided by all.
pub fn common(one: u64, other: u64) -> u64 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// The values at an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    registers: [Value; REGISTERS],
    /// Pointers that are kept in the frame, by their offset from the canonical address.
    pub slots: BTreeMap<i64, Value>,
}

/// Slots of a frame that are followed.
const MOST_SLOTS: usize = 4096;

impl State {
    /// The beginning of a function: the return address is on top of the stack.
    pub fn entry() -> State {
        let mut state = State::default();
        state.set(Register::STACK, Value::Frame(-8));
        state
    }

    pub fn get(&self, register: Register) -> Value {
        self.registers[usize::from(register.0)]
    }

    pub fn set(&mut self, register: Register, value: Value) {
        self.registers[usize::from(register.0)] = value;
    }

    /// Keeps a value in the frame.
    pub fn keep(&mut self, at: i64, value: Value) {
        if value == Value::Unknown || self.slots.len() >= MOST_SLOTS {
            self.slots.remove(&at);
        } else {
            self.slots.insert(at, value);
        }
    }

    /// Keeps the facts that both have. Returns whether some were dropped.
    pub fn meet(&mut self, other: &State, debug: &Debug) -> bool {
        let before = self.clone();
        for (own, other) in self.registers.iter_mut().zip(&other.registers) {
            *own = own.meet(*other, debug);
        }
        self.slots.retain(|at, value| {
            *value = other.slots.get(at).map_or(Value::Unknown, |other| value.meet(*other, debug));
            *value != Value::Unknown
        });
        *self != before
    }

    /// Forgets registers but for where the frame is.
    pub fn only_frame(mut self) -> State {
        for value in &mut self.registers {
            if !matches!(value, Value::Frame(_)) {
                *value = Value::Unknown;
            }
        }
        self
    }

    /// Forgets all but where the frame is.
    pub fn keep_frame(&mut self) {
        *self = std::mem::take(self).only_frame();
        self.slots.clear();
    }
}

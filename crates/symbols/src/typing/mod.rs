//! The type and member that an instruction of a program touches, by debug information alone,
//! without rebuilding the program.
//!
//! Debug information has, for each instruction, the variables in registers and the types that they
//! point to. From there values are followed forward through a function: copied, loaded from
//! members, moved on by numbers, kept in the frame. So `mov rax, [rdi + 8]` and `cmp [rax + 16], 0`
//! are `list.head` and `node.key`.
//!
//! The type and the offset in it are followed, not the value. A pointer that moves beyond the end
//! of an object is assumed to be in an array of such objects.

mod flow;
mod state;
mod way;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::ProgramFile;
use crate::debug::Debug;
use crate::debug::index::EntryId;
use crate::debug::types::Shape;
use crate::debug::variables::{FrameBase, Located, Place, Variables};
use crate::instruction::{Instruction, Operand, Operands, Register};
use crate::unwind::FrameRow;

use state::{State, Value, VariableName, common, is_part};

/// Data that an access touches, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypedData {
    /// The type of the object, if it has a name: "arc".
    pub kind: Option<String>,
    /// The member, if the object has any: "state", "pos.x".
    pub member: Option<String>,
    /// The variable that the object is, of the stack or static: "table".
    pub variable: Option<String>,
}

/// Why an access has no type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Untyped {
    /// The program has no debug information, or none that can be read.
    NoDebugInformation,
    /// The instruction lies in no function that debug information knows.
    NoFunction,
    /// It is no instruction that is known.
    NoInstruction,
    /// The instruction touches no memory.
    NoMemory,
    /// No variable determines the type that the register points to.
    UnknownPointer,
    /// The pointer is to something without a type (`void *`), or to larger numbers than what is
    /// touched.
    UntypedPointer,
    /// The frame, where no variable lies: a value that is kept there.
    Frame,
    /// It saves or restores a register, or a return address: no variable's memory.
    Stack,
    /// Memory of the thread's own, or that of which vectors have the addresses.
    OtherMemory,
    /// Static memory, where no variable lies.
    Static,
}

/// Below it no program has data: the kernel maps nothing there (`vm.mmap_min_addr`).
const LEAST_ADDRESS: i64 = 1 << 16;

/// Bytes of the largest function that is followed.
const MOST_CODE: u64 = 1 << 20;

/// The memory that an instruction touches.
#[derive(Clone, Debug)]
pub struct TypedAccess {
    /// The instruction.
    pub address: u64,
    /// The operand, where there is one.
    pub operand: Option<Operand>,
    /// The data, or the reason why they are unknown.
    pub data: Result<TypedData, Untyped>,
}

/// A function whose instructions have been followed.
struct Function {
    from: u64,
    to: u64,
    /// In the order of addresses.
    accesses: Vec<TypedAccess>,
    /// For each of these the number of the one that the program came from.
    before: Vec<Option<u32>>,
}

/// Types of a program's instructions: a function is followed when one of its instructions is looked
/// up.
#[derive(Default)]
pub struct Typing {
    functions: Vec<Rc<Function>>,
    operands: Operands,
}

impl Typing {
    /// The instruction that has a byte at `address`, and the data that it touches.
    pub fn at(&mut self, program: &ProgramFile, address: u64) -> TypedAccess {
        let none = |why| TypedAccess { address, operand: None, data: Err(why) };
        match self.function(program, address) {
            Ok(function) => function.at(address).map(|at| function.accesses[at].clone()),
            Err(why) => return none(why),
        }
        .unwrap_or_else(|| none(Untyped::NoInstruction))
    }

    /// The access of the instruction that the program came from when it reached the one at
    /// `address`, if there is one: of a comparison, if a jump behind it led there.
    pub fn before(&mut self, program: &ProgramFile, address: u64) -> Option<TypedAccess> {
        let function = self.function(program, address).ok()?;
        let at = function.at(address).filter(|at| function.accesses[*at].address == address)?;
        Some(function.accesses[function.before[at]? as usize].clone())
    }

    /// The function that has code at an address.
    fn function(&mut self, program: &ProgramFile, address: u64) -> Result<Rc<Function>, Untyped> {
        let known = self.functions.iter().find(|function| (function.from..function.to).contains(&address));
        if let Some(function) = known {
            return Ok(function.clone());
        }
        let function = self.look(program, address)?;
        self.functions.push(function.clone());
        Ok(function)
    }

    fn look(&mut self, program: &ProgramFile, address: u64) -> Result<Rc<Function>, Untyped> {
        let debug = program.debug();
        let variables = debug.and_then(|debug| debug.variables_at(address));
        let holds = |range: &&(u64, u64)| (range.0..range.1).contains(&address);
        let from_debug = variables.as_ref().and_then(|found| found.code.iter().find(holds).copied());
        let from_symbols =
            || program.function_at(address).map(|symbol| (symbol.address, symbol.address + symbol.bytes));
        let from_frames = || program.frames()?.code_at(address);
        let known = from_debug.or_else(from_symbols).or_else(from_frames);
        let (from, to) = known.ok_or(Untyped::NoFunction)?;
        if to - from > MOST_CODE {
            return Err(Untyped::NoFunction);
        }
        let code = flow::decode(program.bytes_at(from, (to - from) as usize), from);
        let accesses = match (debug, variables) {
            (Some(debug), Some(variables)) => {
                let known = Known {
                    debug,
                    program,
                    is_fixed: program.is_fixed(),
                    variables: &variables,
                    by_code: by_code(debug, &code, &variables),
                    rows: program.frames().map(|frames| frames.rows(from, to)).unwrap_or_default(),
                    has_handlers: program.frames().is_some_and(|frames| frames.has_handlers(from)),
                    returned: RefCell::default(),
                    names: RefCell::default(),
                };
                flow::follow(&known, &code, &mut self.operands)
            }
            (debug, _) => {
                let why = if debug.is_some() { Untyped::NoFunction } else { Untyped::NoDebugInformation };
                flow::untyped(&code, &mut self.operands, why)
            }
        };
        let before = way::before(&code, &accesses);
        Ok(Rc::new(Function { from, to, accesses, before }))
    }
}

impl Function {
    /// The number of the instruction that has a byte at an address.
    fn at(&self, address: u64) -> Option<usize> {
        self.accesses.partition_point(|access| access.address <= address).checked_sub(1)
    }
}

/// For each instruction the variables that debug information has there, pointers to the largest
/// objects first.
fn by_code(debug: &Debug, code: &[Instruction], variables: &Variables) -> HashMap<u64, Vec<usize>> {
    let pointee = |located: &Located| match debug.type_facts(located.kind)?.shape {
        Shape::Pointer(Some(to)) => debug.type_facts(to).map(|facts| facts.bytes),
        _ => None,
    };
    let mut order: Vec<usize> = (0..variables.located.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(pointee(&variables.located[*number])));
    let mut found: HashMap<u64, Vec<usize>> = HashMap::new();
    for number in order {
        let located = &variables.located[number];
        let from = code.partition_point(|instruction| instruction.address() < located.code.0);
        let inside = code[from..].iter().take_while(|instruction| instruction.address() < located.code.1);
        inside.for_each(|instruction| found.entry(instruction.address()).or_default().push(number));
    }
    found
}

/// The object of an access.
struct Object {
    variable: Option<String>,
    kind: EntryId,
    /// Bytes from its beginning.
    offset: i64,
    /// An unknown multiple of this is added, if it is not 0.
    stride: u64,
}

/// A byte of a variable, static or of the frame.
struct Found {
    name: Option<String>,
    kind: EntryId,
    /// Bytes from its beginning.
    offset: i64,
}

/// All that is known of a function beforehand.
struct Known<'a> {
    debug: &'a Debug,
    program: &'a ProgramFile,
    /// Numbers in instructions may be addresses.
    is_fixed: bool,
    variables: &'a Variables,
    by_code: HashMap<u64, Vec<usize>>,
    /// The frame's place, as the program has it for exceptions.
    rows: Vec<FrameRow>,
    /// Exceptions lead to blocks that nothing else leads to, with other values in registers.
    has_handlers: bool,
    /// Pointers that functions return, by the functions' addresses.
    returned: RefCell<HashMap<u64, Option<Value>>>,
    /// Names of variables that pointers lead into.
    names: RefCell<Vec<String>>,
}

impl Known<'_> {
    fn located(&self, address: u64) -> impl Iterator<Item = &Located> {
        let numbers = self.by_code.get(&address).into_iter().flatten();
        numbers.map(|number| &self.variables.located[*number])
    }

    /// The object that a value of a type points to, from its beginning on. An iterator is a
    /// pointer, too.
    fn pointer(&self, kind: EntryId) -> Option<Value> {
        let (to, _) = self.debug.pointer_of(kind)?;
        Some(to.map_or(Value::Untyped, |to| Value::Into(to, 0, 0, None)))
    }

    /// The pointer that a call gives, by the function of the program at its target, or by the one that
    /// debug information has for what the call returns to. 0 is no function.
    fn returned(&self, target: u64, next: u64) -> Option<Value> {
        let of_program = || {
            let found = || self.debug.returned(target).and_then(|kind| self.pointer(kind));
            *self.returned.borrow_mut().entry(target).or_insert_with(found)
        };
        let known = if target == 0 { None } else { of_program() };
        known.or_else(|| self.pointer(self.debug.result(*self.variables.calls.get(&next)?)?))
    }

    /// Puts the debug information's facts about an instruction into registers and the frame.
    fn overlay(&self, address: u64, state: &mut State) {
        let row =
            self.rows.partition_point(|row| row.code.0 <= address).checked_sub(1).map(|row| self.rows[row]);
        if let Some(row) = row.filter(|row| address < row.code.1) {
            state.set(row.register, Value::Frame(row.offset.wrapping_neg()));
        }
        let mut said = Vec::new();
        for located in self.located(address) {
            let pointer = || match located.pointee {
                Some(to) => Some(Value::Into(to, 0, 0, None)),
                None => self.pointer(located.kind),
            };
            let object = Value::Into(located.kind, 0, 0, None);
            match located.place {
                Place::Value(register, offset) => {
                    let Some(value) = pointer() else { continue };
                    said.push((register, self.moved(value, offset.wrapping_neg())));
                }
                Place::At(..) | Place::Frame(_) => {
                    match (self.frame_offset(located.place, state), located.place) {
                        (Some(at), _) => {
                            let Some(value) = pointer() else { continue };
                            state.slots.insert(at, value);
                        }
                        // A parameter that is passed by its address.
                        (None, Place::At(register, offset)) if register != Register::FRAME => {
                            said.push((register, self.moved(object, offset.wrapping_neg())));
                        }
                        _ => {}
                    }
                }
                Place::Behind(register, offset) => {
                    if let Some(at) = self.frame_offset(Place::At(register, offset), state) {
                        state.slots.insert(at, object);
                    }
                }
            }
        }
        self.learn_registers(&said, state);
    }

    /// Puts facts of debug information about registers into these. Several variables may be in one
    /// register, of different types after a cast: the one that is known already stays.
    fn learn_registers(&self, said: &[(Register, Value)], state: &mut State) {
        for (register, value) in said {
            let known = state.get(*register);
            let is_known = said.iter().any(|(of, value)| of == register && self.is_part_of(known, *value));
            // What counts from a member on is an index: clang tells of some that they are the pointer.
            let is_index = match known {
                Value::Number(0, number) => number != 0 && !(self.is_fixed && number > LEAST_ADDRESS),
                Value::Number(_, rest) => rest != 0,
                _ => false,
            };
            // The stack pointer's place in the frame is known for certain.
            if *register != Register::STACK && !is_known && !is_index {
                state.set(*register, *value);
            }
        }
    }

    /// Returns whether the known fact is the more precise one: a pointer to a vector that is a
    /// member is a pointer to that member.
    fn is_part_of(&self, known: Value, said: Value) -> bool {
        match (known, said) {
            (Value::Into(outer, offset, 0, _), Value::Into(inner, at, ..)) => {
                is_part(self.debug, (outer, offset), (inner, at))
            }
            (Value::Into(..) | Value::Frame(_), Value::Untyped) => true,
            // A variable of the frame is found by its place.
            (Value::Frame(_), _) => true,
            _ => false,
        }
    }

    /// The offset of a place from the frame's canonical address.
    fn frame_offset(&self, place: Place, state: &State) -> Option<i64> {
        let (base, offset) = match place {
            Place::Value(..) | Place::Behind(..) => return None,
            Place::At(register, offset) => (state.get(register), offset),
            Place::Frame(offset) => match self.variables.base {
                FrameBase::Canonical => (Value::Frame(0), offset),
                FrameBase::Register(register) => (state.get(register), offset),
                FrameBase::Unknown => return None,
            },
        };
        match base {
            Value::Frame(at) => at.checked_add(offset),
            _ => None,
        }
    }

    /// A value with a number added.
    fn moved(&self, value: Value, by: i64) -> Value {
        match value {
            Value::Into(kind, offset, stride, of) => Value::Into(kind, offset.wrapping_add(by), stride, of),
            Value::Number(of, rest) => Value::number(of, rest.wrapping_add(by)),
            Value::Frame(offset) => Value::Frame(offset.wrapping_add(by)),
            Value::Thread(offset) => Value::Thread(offset.wrapping_add(by)),
            Value::Unknown | Value::Untyped | Value::Static => value,
        }
    }

    /// A pointer with a number added of which only the remainder is known: one of the next objects of
    /// an array, or of one that is a member.
    fn indexed(&self, value: Value, index: Value) -> Value {
        let Value::Into(kind, offset, before, of) = value else { return Value::Unknown };
        let (stride, rest) = index.parts();
        // Compilers begin at an element that an index never reaches: it may be another variable's.
        let of = of.filter(|_| stride == 0 || u64::try_from(offset).is_ok_and(|offset| offset < stride));
        let offset = offset.wrapping_add(rest);
        let bytes = self.debug.type_facts(kind).map_or(0, |facts| facts.bytes);
        match bytes > 0 && stride > 0 && stride.is_multiple_of(bytes) {
            // In an array of such objects.
            true => Value::Into(kind, offset, common(bytes, before), of),
            false => Value::Into(kind, offset, common(stride, before), of),
        }
    }

    /// The static variable at an address.
    fn global(&self, address: u64) -> Option<Found> {
        let (at, global) = self.debug.global_before(address)?;
        let offset = (address - at).checked_add(global.from)?;
        let end = match global.bytes {
            Some(bytes) => global.from.saturating_add(bytes),
            None => self.debug.type_facts(global.kind)?.bytes,
        };
        let name = Some(global.name.clone());
        (offset < end).then_some(Found { name, kind: global.kind, offset: offset as i64 })
    }

    /// The variable of the frame at an offset from its canonical address. Of one that only a pointer
    /// leads to the name is not known.
    fn frame_variable(&self, address: u64, at: i64, state: &State) -> Option<Found> {
        let inside = |name: Option<String>, kind: EntryId, begin: i64| {
            let offset = at.checked_sub(begin)?;
            let bytes = self.debug.type_facts(kind)?.bytes;
            (offset >= 0 && (offset as u64) < bytes).then_some(Found { name, kind, offset })
        };
        let named = |located: &Located| {
            inside(
                located.name.as_deref().map(str::to_owned),
                located.kind,
                self.frame_offset(located.place, state)?,
            )
        };
        let pointed_to = |located: &Located| {
            let Place::Value(register, offset) = located.place else { return None };
            let (Value::Frame(base), Some(Value::Into(kind, 0, 0, _))) =
                (state.get(register), self.pointer(located.kind))
            else {
                return None;
            };
            inside(None, kind, base.checked_add(offset)?)
        };
        self.located(address).find_map(named).or_else(|| self.located(address).find_map(pointed_to))
    }

    /// The variable of the thread's own memory, at an offset from its address.
    fn thread_local(&self, at: i64) -> Option<Found> {
        let own = at.checked_add_unsigned(self.program.thread_bytes()?)?;
        let (begin, global) = self.debug.thread_local_before(u64::try_from(own).ok()?)?;
        let offset = own.checked_sub_unsigned(begin)?;
        let name = Some(global.name.clone());
        let bytes = self.debug.type_facts(global.kind)?.bytes;
        (offset.unsigned_abs() < bytes).then_some(Found { name, kind: global.kind, offset })
    }

    /// The address of a byte of a variable.
    fn begun(&self, found: Found) -> Value {
        let number = |name: String| {
            let mut names = self.names.borrow_mut();
            let known = names.iter().position(|known| *known == name);
            let number = known.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            VariableName(number as u32)
        };
        Value::Into(found.kind, found.offset, 0, found.name.map(number))
    }

    /// The object that a pointer leads to, bytes behind it.
    fn at(&self, pointer: Value, displacement: i64) -> Option<Object> {
        let Value::Into(kind, offset, stride, of) = pointer else { return None };
        let offset = offset.wrapping_add(displacement);
        let bytes = self.debug.type_facts(kind).map_or(0, |facts| facts.bytes as i64);
        // Beyond a variable's end lies another.
        let of = of.filter(|_| (0..bytes).contains(&offset));
        let variable = of.map(|VariableName(number)| self.names.borrow()[number as usize].clone());
        Some(Object { variable, kind, offset, stride })
    }

    /// The object that an operand touches.
    fn object(&self, address: u64, operand: &Operand, state: &State) -> Result<Object, Untyped> {
        if operand.is_vector() {
            return Err(Untyped::OtherMemory);
        }
        let displacement = operand.displacement() as i64;
        let value = |register: Option<Register>| register.map(|register| state.get(register));
        let (base, index) = (value(operand.base()), value(operand.index()));
        let scale = i64::from(operand.scale());
        let of = |found: Option<Found>, index: Option<Value>, why| {
            let found = found.ok_or(why)?;
            let start = self.begun(found);
            self.at(index.map_or(start, |index| self.indexed(start, index)), 0).ok_or(why)
        };
        let index = index.map(|index| if scale == 1 { index } else { index.times(scale) });
        let pointer = |pointer: Value, index: Option<Value>| match index
            .map_or(pointer, |index| self.indexed(pointer, index))
        {
            pointer @ Value::Into(..) => self.at(pointer, displacement).ok_or(Untyped::UnknownPointer),
            _ => Err(Untyped::UnknownPointer),
        };
        if operand.is_thread_local() {
            let (at, index) = match (base, index) {
                (Some(Value::Number(0, number)), None) => (displacement.wrapping_add(number), None),
                (index, None) | (None, index) => (displacement, index),
                _ => return Err(Untyped::OtherMemory),
            };
            return of(self.thread_local(at), index, Untyped::OtherMemory);
        }
        match (base, index) {
            (Some(Value::Thread(at)), index) => {
                of(self.thread_local(at.wrapping_add(displacement)), index, Untyped::OtherMemory)
            }
            (index, Some(Value::Thread(at))) if scale == 1 => {
                of(self.thread_local(at.wrapping_add(displacement)), index, Untyped::OtherMemory)
            }
            (Some(base @ Value::Into(..)), index) => pointer(base, index),
            (base, Some(index @ Value::Into(..))) if scale == 1 => pointer(index, base),
            (Some(Value::Frame(at)), index) => {
                of(self.frame_variable(address, at.wrapping_add(displacement), state), index, Untyped::Frame)
            }
            // Addressed from the instruction on.
            (None, None) => of(self.global(displacement as u64), None, Untyped::Static),
            (Some(Value::Untyped), _) => Err(Untyped::UntypedPointer),
            (Some(Value::Static), _) | (_, Some(Value::Static)) => Err(Untyped::Static),
            // A static array's address is in the instruction.
            (None, index) if self.is_fixed => of(self.global(displacement as u64), index, Untyped::Static),
            (base, None) if self.is_fixed => {
                of(self.global(displacement as u64), base, Untyped::UnknownPointer)
            }
            _ => Err(Untyped::UnknownPointer),
        }
    }

    /// The data that an operand touches, in words.
    fn data(&self, address: u64, operand: &Operand, state: &State) -> Result<TypedData, Untyped> {
        let Object { variable, kind, offset, stride } = self.object(address, operand, state)?;
        let Some(inside) = self.debug.inside(kind, offset, stride, operand.bytes.into()) else {
            // Between a variable's members, or beyond those of an unknown object.
            let kind =
                variable.as_ref().ok_or(Untyped::UnknownPointer).map(|_| self.debug.type_name(kind))?;
            return Ok(TypedData { kind, member: None, variable });
        };
        let is_known = variable.is_some() || inside.member.is_some();
        // A pointer to larger numbers than the one that is touched was cast.
        if !is_known && self.debug.is_larger_number(inside.kind, operand.bytes.into()) {
            return Err(Untyped::UntypedPointer);
        }
        // Steps that are smaller than what is touched say nothing of where it is, and smaller elements
        // are not what is touched there.
        let bytes = u64::from(operand.bytes);
        let is_smaller = || self.debug.type_facts(inside.kind).is_some_and(|facts| facts.bytes < bytes);
        // Vectors are read one after the other; other steps over smaller elements are those of
        // something else.
        let is_other = stride > 0 && (stride < bytes || (stride > bytes && bytes <= 8));
        if inside.member.is_some() && is_other && is_smaller() {
            return Ok(TypedData { kind: self.debug.type_name(kind), member: None, variable });
        }
        let one_of = || self.debug.only_pointers(kind, offset, stride).map(|found| found.names);
        let member = inside.member.or_else(|| one_of().filter(|_| operand.bytes == 8));
        let kind = match member {
            Some(_) => self.debug.type_name(inside.owner),
            None => self.debug.type_name(inside.kind),
        };
        Ok(TypedData { kind, member, variable })
    }

    /// The value that a load of eight bytes gives.
    fn loaded(&self, address: u64, operand: &Operand, state: &State) -> Value {
        if operand.is_thread_local()
            && (operand.base(), operand.index()) == (None, None)
            && operand.displacement() == 0
        {
            return Value::Thread(0);
        }
        if let Some(Value::Frame(at)) = operand.base().map(|base| state.get(base))
            && operand.index().is_none()
            && let Some(value) = state.slots.get(&at.wrapping_add(operand.displacement() as i64))
        {
            return *value;
        }
        if (operand.base(), operand.index()) == (None, None)
            && !operand.is_thread_local()
            && let Some(target) = self.program.linked(operand.displacement())
        {
            return match self.global(target) {
                Some(found) => self.begun(found),
                None => Value::Static,
            };
        }
        self.pointer_at(address, operand, state)
    }

    /// The pointer that the variable or member at an operand is, by its type.
    fn pointer_at(&self, address: u64, operand: &Operand, state: &State) -> Value {
        let Ok(Object { kind, offset, stride, .. }) = self.object(address, operand, state) else {
            return Value::Unknown;
        };
        let inside = self.debug.inside(kind, offset, stride, 8).filter(|inside| inside.rest == 0);
        let pointer = inside.and_then(|inside| match inside.element {
            Some(element) => Some(Value::Into(element, 0, 0, None)),
            None => self.pointer(inside.kind),
        });
        // One of several members, as compilers choose a tree's next node without a branch.
        let one_of =
            || self.debug.only_pointers(kind, offset, stride).map(|found| Value::Into(found.to, 0, 0, None));
        pointer.or_else(one_of).unwrap_or(Value::Unknown)
    }
}

#[cfg(test)]
mod tests;

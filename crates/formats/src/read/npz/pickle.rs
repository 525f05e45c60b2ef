//! Sparse matrices that NumPy pickled into an archive, read without running anything.
//!
//! A pickle is a program that makes Python objects. Here its instructions only note what would be made: no name in it
//! is looked up, and nothing is called. Of the notes one thing is understood, an array of one SciPy matrix in
//! compressed rows, and its parts are handed on as the arrays that they are. Everything else is not read.

use std::collections::HashMap;
use std::ops::Range;

/// More objects than a few matrices have.
const MAX_OBJECTS: usize = 1 << 16;
/// Names that are understood are shorter.
const MAX_NAME: usize = 64;

/// An object that a pickle would make, as far as it matters; objects are named by their positions in a list.
#[derive(Debug, Clone)]
enum Object {
    Bool(bool),
    Whole(i64),
    Text(String),
    /// Where the bytes lie in the pickle.
    Bytes(Range<usize>),
    /// A tuple or a list.
    Items(Vec<usize>),
    Entries(Vec<(usize, usize)>),
    /// A class or function, by its last name.
    Name(String),
    /// What a class or function would make of its arguments, and the state it would get.
    Made {
        by: usize,
        arguments: usize,
        state: Option<usize>,
    },
    /// Anything else.
    Other,
}

/// The matrix in compressed rows that an object array of one element holds: `shape`, `indptr`, `indices` and `data`,
/// each as the content of an `.npy` file. Nothing where it holds anything else.
pub(super) fn compressed_rows(pickle: &[u8]) -> Option<[(&'static str, Vec<u8>); 4]> {
    let (objects, whole) = Machine::run(pickle)?;
    let read = Reader { pickle, objects: &objects };
    let (_, content) = read.array(whole)?;
    let [matrix] = read.items(content)? else { return None };
    let Object::Made { by, state: Some(state), .. } = &objects[*matrix] else { return None };
    if !["csr_matrix", "csr_array"].contains(&read.name(*by)?) {
        return None;
    }
    let Object::Entries(entries) = &objects[*state] else { return None };
    let part = |wanted: &str| {
        entries.iter().find(|(key, _)| read.text(*key) == Some(wanted)).map(|(_, value)| *value)
    };
    let shape: Option<Vec<i64>> = read.items(part("_shape")?)?.iter().map(|&side| read.whole(side)).collect();
    let shape: Vec<u8> = shape?.iter().flat_map(|side| side.to_le_bytes()).collect();
    let file = |name: &str| read.file(part(name)?);
    Some([
        ("shape", npy("<i8", false, &[shape.len() as i64 / 8], &shape)),
        ("indptr", file("indptr")?),
        ("indices", file("indices")?),
        ("data", file("data")?),
    ])
}

/// The content of an `.npy` file.
fn npy(kind: &str, fortran: bool, shape: &[i64], values: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let shape: String = shape.iter().map(|side| format!("{side},")).collect();
    let header = format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': ({shape}), }}\n");
    [&b"\x93NUMPY\x02\x00"[..], &(header.len() as u32).to_le_bytes(), header.as_bytes(), values].concat()
}

/// Notes on objects, and the pickle they lie in.
struct Reader<'a> {
    pickle: &'a [u8],
    objects: &'a [Object],
}

impl<'a> Reader<'a> {
    fn items(&self, at: usize) -> Option<&'a [usize]> {
        if let Object::Items(items) = &self.objects[at] { Some(items) } else { None }
    }

    fn whole(&self, at: usize) -> Option<i64> {
        if let Object::Whole(value) = self.objects[at] { Some(value) } else { None }
    }

    fn text(&self, at: usize) -> Option<&'a str> {
        if let Object::Text(text) = &self.objects[at] { Some(text) } else { None }
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        if let Object::Name(name) = &self.objects[at] { Some(name) } else { None }
    }

    /// The state of an array: its version, shape, type, order, and content.
    fn array(&self, at: usize) -> Option<([usize; 4], usize)> {
        let Object::Made { by, state: Some(state), .. } = self.objects[at] else { return None };
        let [version, shape, kind, fortran, content] = *self.items(state)? else { return None };
        (self.name(by)? == "_reconstruct").then_some(([version, shape, kind, fortran], content))
    }

    /// An array of numbers, as the content of an `.npy` file.
    fn file(&self, at: usize) -> Option<Vec<u8>> {
        let ([_, shape, kind, fortran], content) = self.array(at)?;
        let shape: Option<Vec<i64>> = self.items(shape)?.iter().map(|&side| self.whole(side)).collect();
        let (Object::Bool(fortran), Object::Bytes(bytes)) = (&self.objects[fortran], &self.objects[content])
        else {
            return None;
        };
        Some(npy(&self.kind(kind)?, *fortran, &shape?, &self.pickle[bytes.clone()]))
    }

    /// A type of numbers in NumPy's words, such as `<f4`.
    fn kind(&self, at: usize) -> Option<String> {
        let Object::Made { by, arguments, state } = self.objects[at] else { return None };
        let letters = self.text(*self.items(arguments)?.first()?)?;
        let order = match state {
            Some(state) => self.text(*self.items(state)?.get(1)?)?,
            None => "|",
        };
        let plain = letters.len() <= 3 && letters.bytes().all(|letter| letter.is_ascii_alphanumeric());
        let is_order = ["<", ">", "|", "="].contains(&order);
        (self.name(by)? == "dtype" && plain && is_order).then(|| format!("{order}{letters}"))
    }
}

/// A stack of objects, with marks on it, and objects that are remembered by number.
struct Machine<'a> {
    pickle: &'a [u8],
    at: usize,
    objects: Vec<Object>,
    stack: Vec<usize>,
    marks: Vec<usize>,
    memo: HashMap<u32, usize>,
}

impl<'a> Machine<'a> {
    /// All objects, and the one that the pickle is of; nothing where an instruction is not known.
    fn run(pickle: &[u8]) -> Option<(Vec<Object>, usize)> {
        let mut machine =
            Machine { pickle, at: 0, objects: vec![], stack: vec![], marks: vec![], memo: HashMap::new() };
        loop {
            let instruction = machine.byte()?;
            if instruction == b'.' {
                let whole = machine.stack.pop()?;
                return Some((machine.objects, whole));
            }
            machine.step(instruction)?;
            if machine.objects.len().max(machine.stack.len()).max(machine.memo.len()) > MAX_OBJECTS {
                return None;
            }
        }
    }

    fn step(&mut self, instruction: u8) -> Option<()> {
        match instruction {
            // Protocol and frames.
            0x80 => self.skip(1),
            0x95 => self.skip(8),
            b'(' => {
                self.marks.push(self.stack.len());
                Some(())
            }
            b'N' => self.push(Object::Other),
            0x88 | 0x89 => self.push(Object::Bool(instruction == 0x88)),
            b'K' => self.number(1),
            b'M' => self.number(2),
            b'J' => {
                let value = i32::from_le_bytes(self.bytes(4)?.try_into().ok()?);
                self.push(Object::Whole(value.into()))
            }
            0x8a => {
                let length = self.byte()?.into();
                let bytes = self.bytes(length)?;
                let mut value = [if bytes.last()? & 0x80 == 0 { 0 } else { 0xff }; 8];
                value.get_mut(..length)?.copy_from_slice(bytes);
                self.push(Object::Whole(i64::from_le_bytes(value)))
            }
            b'G' => {
                self.skip(8)?;
                self.push(Object::Other)
            }
            b'X' | 0x8c | 0x8d => {
                let range = self.sized(match instruction {
                    0x8c => 1,
                    b'X' => 4,
                    _ => 8,
                })?;
                let text = std::str::from_utf8(&self.pickle[range]).ok()?.to_string();
                self.push(Object::Text(text))
            }
            b'B' | b'C' | 0x8e => {
                let range = self.sized(match instruction {
                    b'C' => 1,
                    b'B' => 4,
                    _ => 8,
                })?;
                self.push(Object::Bytes(range))
            }
            b'c' => {
                self.line()?;
                let name = self.line()?;
                self.push(Object::Name(name))
            }
            0x93 => {
                let (name, _) = (self.pop()?, self.pop()?);
                let Object::Text(name) = &self.objects[name] else { return None };
                let name = name.get(..MAX_NAME.min(name.len()))?.to_string();
                self.push(Object::Name(name))
            }
            b')' | b']' => self.push(Object::Items(vec![])),
            0x85..=0x87 => {
                let items =
                    self.stack.split_off(self.stack.len().checked_sub(usize::from(instruction - 0x84))?);
                self.push(Object::Items(items))
            }
            b't' | b'l' => {
                let items = self.above_mark()?;
                self.push(Object::Items(items))
            }
            b'}' => self.push(Object::Entries(vec![])),
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.enter(&[key, value])
            }
            b'u' => {
                let items = self.above_mark()?;
                self.enter(&items)
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])
            }
            b'e' => {
                let items = self.above_mark()?;
                self.append(items)
            }
            b'R' | 0x81 => {
                let (arguments, by) = (self.pop()?, self.pop()?);
                self.push(Object::Made { by, arguments, state: None })
            }
            b'b' => {
                let given = self.pop()?;
                let at = *self.stack.last()?;
                if let Object::Made { state, .. } = &mut self.objects[at] {
                    *state = Some(given);
                }
                Some(())
            }
            b'0' => self.pop().map(|_| ()),
            b'q' => {
                let number = self.byte()?.into();
                self.remember(number)
            }
            b'r' => {
                let number = u32::from_le_bytes(self.bytes(4)?.try_into().ok()?);
                self.remember(number)
            }
            0x94 => self.remember(self.memo.len() as u32),
            b'h' => {
                let number = self.byte()?.into();
                self.recall(number)
            }
            b'j' => {
                let number = u32::from_le_bytes(self.bytes(4)?.try_into().ok()?);
                self.recall(number)
            }
            _ => None,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let bytes = self.pickle.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(bytes)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes(count).map(|_| ())
    }

    /// The place of bytes behind their number, which has this many bytes itself.
    fn sized(&mut self, width: usize) -> Option<Range<usize>> {
        let mut count = [0; 8];
        count[..width].copy_from_slice(self.bytes(width)?);
        let (start, count) = (self.at, usize::try_from(u64::from_le_bytes(count)).ok()?);
        self.skip(count)?;
        Some(start..start + count)
    }

    fn number(&mut self, width: usize) -> Option<()> {
        let mut value = [0; 8];
        value[..width].copy_from_slice(self.bytes(width)?);
        self.push(Object::Whole(i64::from_le_bytes(value)))
    }

    fn line(&mut self) -> Option<String> {
        let length = self.pickle[self.at..].iter().position(|&byte| byte == b'\n')?;
        let line = self.bytes(length + 1)?;
        std::str::from_utf8(&line[..length]).ok().map(str::to_string)
    }

    fn push(&mut self, object: Object) -> Option<()> {
        self.stack.push(self.objects.len());
        self.objects.push(object);
        Some(())
    }

    /// The top of the stack, which no mark protects.
    fn pop(&mut self) -> Option<usize> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() > floor { self.stack.pop() } else { None }
    }

    fn above_mark(&mut self) -> Option<Vec<usize>> {
        let mark = self.marks.pop()?;
        (mark <= self.stack.len()).then(|| self.stack.split_off(mark))
    }

    fn enter(&mut self, items: &[usize]) -> Option<()> {
        let at = *self.stack.last()?;
        let Object::Entries(entries) = &mut self.objects[at] else { return None };
        entries.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1])));
        Some(())
    }

    fn append(&mut self, items: Vec<usize>) -> Option<()> {
        let at = *self.stack.last()?;
        let Object::Items(all) = &mut self.objects[at] else { return None };
        all.extend(items);
        Some(())
    }

    fn remember(&mut self, number: u32) -> Option<()> {
        let at = *self.stack.last()?;
        self.memo.insert(number, at);
        Some(())
    }

    fn recall(&mut self, number: u32) -> Option<()> {
        self.stack.push(*self.memo.get(&number)?);
        Some(())
    }
}

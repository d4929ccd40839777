//! The grammar of pcap-filter(7). `and` and `or` have the same precedence and are read from left to right. Tests are
//! compiled as their words are read, because `vlan` and similar primitives move the headers for the rest of the text.

use crate::arithmetic::{Expression, Precedence, SIGN_LEVEL, operator};
use crate::error::{FilterError, refuse};
use crate::host::Ipv4;
use crate::layers::Layers;
use crate::names::Names;
use crate::node::{Node, Relation, Size, Value};
use crate::port::{self, Ports, Transport};
use crate::qualifiers::{Direction, Kind, Proto, Qualifiers};
use crate::token::{self, Sign, Token, tokens};
use crate::words::Word;
use crate::{protocol, slots};
use alloc::vec::Vec;

/// Longest text of a filter, bytes.
pub const MAX_TEXT: usize = 4096;
/// Deepest nesting of brackets, `not` and signs of numbers.
const MAX_DEPTH: usize = 64;
/// Largest number of words and signs.
const MAX_TOKENS: usize = 1024;
/// Largest number of comparisons, the same as Linux' limit on instructions of a filter (`BPF_MAXINSNS`).
const MAX_TESTS: usize = 4096;

/// Compiles a text.
pub(crate) fn compile(text: &str, names: &Names) -> Result<Node, FilterError> {
    if text.len() > MAX_TEXT {
        refuse!("the filter has {} bytes; the maximum is {MAX_TEXT}", text.len());
    }
    let tokens = tokens(text)?;
    if tokens.len() > MAX_TOKENS {
        refuse!("the filter has {} words and operators; the maximum is {MAX_TOKENS}", tokens.len());
    }
    if tokens.is_empty() {
        return Ok(Node::True);
    }
    let mut parser = Parser { text, tokens, at: 0, names, layers: Layers::ETHERNET, depth: 0 };
    let mut node = parser.expression(None)?.0;
    if parser.peek().is_some() {
        return parser.unexpected();
    }
    let tests = node.tests();
    if tests > MAX_TESTS {
        refuse!("the filter makes {tests} tests of a frame; the maximum is {MAX_TESTS}");
    }
    slots::check(&node)?;
    node.optimize();
    Ok(node)
}

/// A compiled part of a filter, and the qualifiers for operands after it.
type Part = (Node, Option<Qualifiers>);

/// An item at a point of the text at which several kinds may stand.
enum Item {
    /// A test that may be joined with others.
    Term(Part),
    /// An operand without qualifiers of its own.
    Operand(Part),
    /// A number: an operand or an expression.
    Number(u32),
    Expression(Expression),
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token<'a>)>,
    at: usize,
    names: &'a Names,
    layers: Layers,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).map(|(_, token)| *token)
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    /// Consumes a token if it is the next.
    fn takes(&mut self, token: Token<'_>) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn takes_word(&mut self, word: Word) -> bool {
        self.takes(Token::Word(word))
    }

    fn takes_sign(&mut self, sign: Sign) -> bool {
        self.takes(Token::Sign(sign))
    }

    fn expect(&mut self, sign: Sign) -> Result<(), FilterError> {
        if self.takes_sign(sign) { Ok(()) } else { self.unexpected() }
    }

    fn unexpected<T>(&self) -> Result<T, FilterError> {
        match self.tokens.get(self.at) {
            Some((offset, _)) => refuse!("syntax error at \"{:.30}\"", &self.text[*offset..]),
            None => refuse!("the filter ends too early: a word or a bracket is missing"),
        }
    }

    /// Runs a parser one level deeper.
    fn deeper<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, FilterError>,
    ) -> Result<T, FilterError> {
        if self.depth == MAX_DEPTH {
            refuse!("brackets, `not` and operators are nested deeper than {MAX_DEPTH}");
        }
        self.depth += 1;
        let parsed = parse(self)?;
        self.depth -= 1;
        Ok(parsed)
    }

    /// Parses terms joined by `and` and `or`. Operands without qualifiers may follow the first, and have those before
    /// them.
    fn expression(&mut self, q: Option<Qualifiers>) -> Result<Part, FilterError> {
        match self.item(q, false)? {
            Item::Term(first) => self.rest_of_expression(first),
            _ => self.unexpected(),
        }
    }

    fn rest_of_expression(&mut self, mut left: Part) -> Result<Part, FilterError> {
        while let Some(join) = self.joint() {
            let (node, q) = match self.item(left.1, true)? {
                Item::Term(right) | Item::Operand(right) => right,
                Item::Number(number) => (self.number(number, left.1)?, left.1),
                Item::Expression(_) => return self.unexpected(),
            };
            left = (join(left.0, node), q);
        }
        Ok(left)
    }

    /// Parses operands joined by `and` and `or`.
    fn rest_of_operands(&mut self, mut left: Part) -> Result<Part, FilterError> {
        while let Some(join) = self.joint() {
            let node = self.operand(left.1)?;
            left = (join(left.0, node), left.1);
        }
        Ok(left)
    }

    fn joint(&mut self) -> Option<fn(Node, Node) -> Node> {
        if self.takes_word(Word::And) {
            Some(Node::and)
        } else if self.takes_word(Word::Or) {
            Some(Node::or)
        } else {
            None
        }
    }

    /// Parses the item at this place. `operands` says whether operands may be here; those have the qualifiers `q`.
    fn item(&mut self, q: Option<Qualifiers>, operands: bool) -> Result<Item, FilterError> {
        let first = match self.peek() {
            Some(Token::Word(Word::Not)) => return self.negation(q, operands),
            Some(Token::Sign(Sign::Open)) => self.brackets(q, operands)?,
            Some(Token::Number(number)) => {
                self.at += 1;
                Item::Number(number)
            }
            Some(Token::Sign(Sign::Minus)) => Item::Expression(self.arithmetic(0)?),
            Some(Token::Word(Word::Length)) => Item::Expression(self.unary()?),
            Some(Token::Word(Word::Proto(_))) if self.is_index() => Item::Expression(self.unary()?),
            Some(Token::Word(_)) => Item::Term(self.term()?),
            Some(_) if operands => Item::Operand((self.operand(q)?, q)),
            _ => return self.unexpected(),
        };
        self.relation(first)
    }

    fn is_index(&self) -> bool {
        matches!(self.tokens.get(self.at + 1), Some((_, Token::Sign(Sign::OpenIndex))))
    }

    fn negation(&mut self, q: Option<Qualifiers>, operands: bool) -> Result<Item, FilterError> {
        self.at += 1;
        match self.deeper(|parser| parser.item(q, operands))? {
            Item::Term((node, q)) => Ok(Item::Term((node.negated(), q))),
            Item::Operand((node, q)) => Ok(Item::Operand((node.negated(), q))),
            Item::Number(number) if operands => Ok(Item::Operand((self.number(number, q)?.negated(), q))),
            Item::Number(_) | Item::Expression(_) => self.unexpected(),
        }
    }

    /// Parses brackets around terms, operands, a number or an expression. Qualifiers from before the brackets hold
    /// after them.
    fn brackets(&mut self, q: Option<Qualifiers>, operands: bool) -> Result<Item, FilterError> {
        self.at += 1;
        let item = self.deeper(|parser| {
            Ok(match parser.item(q, operands)? {
                Item::Term(first) => Item::Term((parser.rest_of_expression(first)?.0, q)),
                Item::Operand(first) => Item::Operand((parser.rest_of_operands(first)?.0, q)),
                Item::Number(number) if operands && parser.peek() != Some(Token::Sign(Sign::Close)) => {
                    let first = (parser.number(number, q)?, q);
                    Item::Operand((parser.rest_of_operands(first)?.0, q))
                }
                item => item,
            })
        })?;
        self.expect(Sign::Close)?;
        Ok(item)
    }

    /// Parses the rest of an expression, and its comparison with another.
    fn relation(&mut self, first: Item) -> Result<Item, FilterError> {
        let left = match first {
            Item::Number(number) if self.continues() => Expression::number(number),
            Item::Expression(expression) => expression,
            item => return Ok(item),
        };
        let left = self.rest_of_arithmetic(left, 0)?;
        let Some(Token::Sign(sign)) = self.peek() else { return Ok(Item::Expression(left)) };
        let (relation, is_negated) = match sign {
            Sign::Equal => (Relation::Equal, false),
            Sign::NotEqual => (Relation::Equal, true),
            Sign::Greater => (Relation::Greater, false),
            Sign::LessOrEqual => (Relation::Greater, true),
            Sign::GreaterOrEqual => (Relation::GreaterOrEqual, false),
            Sign::Less => (Relation::GreaterOrEqual, true),
            _ => return Ok(Item::Expression(left)),
        };
        self.at += 1;
        let right = self.arithmetic(0)?;
        let test = left.value.compare(relation, right.value);
        let test = if is_negated { test.negated() } else { test };
        let tests = [left.checks, right.checks, Some(test)].into_iter().flatten().reduce(Node::and);
        Ok(Item::Term((tests.unwrap_or(Node::True), None)))
    }

    /// Returns `true` if an operator or a comparison is next.
    fn continues(&self) -> bool {
        let Some(Token::Sign(sign)) = self.peek() else { return false };
        operator(sign).is_some()
            || matches!(
                sign,
                Sign::Equal
                    | Sign::NotEqual
                    | Sign::Less
                    | Sign::LessOrEqual
                    | Sign::Greater
                    | Sign::GreaterOrEqual
            )
    }

    /// Parses an expression of operators with at least this precedence.
    fn arithmetic(&mut self, level: u8) -> Result<Expression, FilterError> {
        let first = self.unary()?;
        self.rest_of_arithmetic(first, level)
    }

    fn rest_of_arithmetic(&mut self, mut left: Expression, level: u8) -> Result<Expression, FilterError> {
        while let Some(Token::Sign(sign)) = self.peek()
            && let Some((operator, precedence)) = operator(sign)
        {
            let right_level = match precedence {
                Precedence::Level(own) if own < level => break,
                Precedence::Level(own) => own + 1,
                Precedence::Greedy => 0,
            };
            self.at += 1;
            let right = self.deeper(|parser| parser.arithmetic(right_level))?;
            left = left.join(operator, right)?;
        }
        Ok(left)
    }

    /// Parses a number, a field, the length, or an expression in brackets.
    fn unary(&mut self) -> Result<Expression, FilterError> {
        let Some(token) = self.next() else { return self.unexpected() };
        match token {
            Token::Number(number) => Ok(Expression::number(number)),
            Token::Word(Word::Length) => Ok(Expression { value: Value::Length, checks: None }),
            Token::Sign(Sign::Minus) => Ok(self.deeper(|parser| parser.arithmetic(SIGN_LEVEL))?.negated()),
            Token::Sign(Sign::Open) => {
                let inner = self.deeper(|parser| parser.arithmetic(0))?;
                self.expect(Sign::Close)?;
                Ok(inner)
            }
            Token::Word(Word::Proto(proto)) if self.takes_sign(Sign::OpenIndex) => {
                let index = self.deeper(|parser| parser.arithmetic(0))?;
                let size = if self.takes_sign(Sign::Colon) { self.plain_number()? } else { 1 };
                self.expect(Sign::CloseIndex)?;
                index.load(proto, size, &self.layers)
            }
            _ => {
                self.at -= 1;
                self.unexpected()
            }
        }
    }

    fn plain_number(&mut self) -> Result<u32, FilterError> {
        let Some(Token::Number(number)) = self.peek() else { return self.unexpected() };
        self.at += 1;
        Ok(number)
    }

    /// Parses a number, possibly in brackets, if one is next.
    fn optional_number(&mut self) -> Result<Option<u32>, FilterError> {
        if self.takes_sign(Sign::Open) {
            let number = self.deeper(Self::optional_number)?;
            self.expect(Sign::Close)?;
            return if number.is_none() { self.unexpected() } else { Ok(number) };
        }
        match self.peek() {
            Some(Token::Number(number)) => {
                self.at += 1;
                Ok(Some(number))
            }
            _ => Ok(None),
        }
    }
}

mod primitive;

//! Parses the grammar of pcap-filter(7). `and` and `or` have the same precedence and are read from left to right. Tests
//! are compiled as their words are read, because `vlan` and similar primitives move the headers for the rest of the
//! text.

use crate::arithmetic::{ArithmeticExpression, OperatorPrecedence, SIGN_LEVEL, operator};
use crate::error::{FilterError, refuse};
use crate::host::MaskedIpv4Address;
use crate::layers::LayerOffsets;
use crate::names::NameDatabases;
use crate::node::{ComparisonRelation, ComputedNumber, FieldSize, FilterNode};
use crate::port::{self, PortComparison, PortTransport};
use crate::qualifiers::{DirectionQualifier, PrimitiveQualifiers, ProtocolQualifier, TypeQualifier};
use crate::token::{self, FilterToken, SymbolToken, tokens};
use crate::words::ReservedWord;
use crate::{protocol, slots};
use alloc::vec::Vec;

/// Maximum length of a filter's text in bytes.
pub const MAX_TEXT: usize = 4096;
/// Maximum nesting of brackets, `not` and signs of numbers in a filter.
const MAX_DEPTH: usize = 64;
/// Maximum number of words and signs of a filter.
const MAX_TOKENS: usize = 1024;
/// Maximum number of comparisons of a filter, the same as Linux' limit on instructions of a filter (`BPF_MAXINSNS`).
const MAX_TESTS: usize = 4096;

/// Compiles the text of a filter into a tree of tests.
pub(crate) fn compile(text: &str, names: &NameDatabases) -> Result<FilterNode, FilterError> {
    if text.len() > MAX_TEXT {
        refuse!("the filter has {} bytes; the maximum is {MAX_TEXT}", text.len());
    }
    let tokens = tokens(text)?;
    if tokens.len() > MAX_TOKENS {
        refuse!("the filter has {} words and operators; the maximum is {MAX_TOKENS}", tokens.len());
    }
    if tokens.is_empty() {
        return Ok(FilterNode::True);
    }
    let mut parser = FilterParser { text, tokens, at: 0, names, layers: LayerOffsets::ETHERNET, depth: 0 };
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

/// Compiled part of a filter, and the qualifiers that operands after the part inherit.
type CompiledPart = (FilterNode, Option<PrimitiveQualifiers>);

/// Item of the filter's text, parsed at a point of the text where several kinds of item are allowed.
enum ParsedFilterItem {
    /// Test of the frame that may be joined with other tests.
    Term(CompiledPart),
    /// Operand that inherits the qualifiers of an earlier operand.
    Operand(CompiledPart),
    /// Number that is an operand or the beginning of an arithmetic expression.
    Number(u32),
    Expression(ArithmeticExpression),
}

struct FilterParser<'a> {
    text: &'a str,
    tokens: Vec<(usize, FilterToken<'a>)>,
    at: usize,
    names: &'a NameDatabases,
    layers: LayerOffsets,
    depth: usize,
}

impl<'a> FilterParser<'a> {
    fn peek(&self) -> Option<FilterToken<'a>> {
        self.tokens.get(self.at).map(|(_, token)| *token)
    }

    fn next(&mut self) -> Option<FilterToken<'a>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    /// Consumes the next token of the filter if it equals `token`. Returns `true` if so.
    fn takes(&mut self, token: FilterToken<'_>) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn takes_word(&mut self, word: ReservedWord) -> bool {
        self.takes(FilterToken::Word(word))
    }

    fn takes_sign(&mut self, sign: SymbolToken) -> bool {
        self.takes(FilterToken::Sign(sign))
    }

    fn expect(&mut self, sign: SymbolToken) -> Result<(), FilterError> {
        if self.takes_sign(sign) { Ok(()) } else { self.unexpected() }
    }

    fn unexpected<T>(&self) -> Result<T, FilterError> {
        match self.tokens.get(self.at) {
            Some((offset, _)) => refuse!("syntax error at \"{:.30}\"", &self.text[*offset..]),
            None => refuse!("the filter ends too early: a word or a bracket is missing"),
        }
    }

    /// Calls `parse` with the nesting depth raised by one. Nesting beyond the maximum is an error.
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

    /// Parses an expression: filter terms joined by `and` and `or`. Further operands may omit their qualifiers, and
    /// then inherit those of the previous operand.
    fn expression(&mut self, q: Option<PrimitiveQualifiers>) -> Result<CompiledPart, FilterError> {
        match self.item(q, false)? {
            ParsedFilterItem::Term(first) => self.rest_of_expression(first),
            _ => self.unexpected(),
        }
    }

    fn rest_of_expression(&mut self, mut left: CompiledPart) -> Result<CompiledPart, FilterError> {
        while let Some(join) = self.joint() {
            let (node, q) = match self.item(left.1, true)? {
                ParsedFilterItem::Term(right) | ParsedFilterItem::Operand(right) => right,
                ParsedFilterItem::Number(number) => (self.number(number, left.1)?, left.1),
                ParsedFilterItem::Expression(_) => return self.unexpected(),
            };
            left = (join(left.0, node), q);
        }
        Ok(left)
    }

    /// Parses further operands joined to `left` by `and` and `or`.
    fn rest_of_operands(&mut self, mut left: CompiledPart) -> Result<CompiledPart, FilterError> {
        while let Some(join) = self.joint() {
            let node = self.operand(left.1)?;
            left = (join(left.0, node), left.1);
        }
        Ok(left)
    }

    fn joint(&mut self) -> Option<fn(FilterNode, FilterNode) -> FilterNode> {
        if self.takes_word(ReservedWord::And) {
            Some(FilterNode::and)
        } else if self.takes_word(ReservedWord::Or) {
            Some(FilterNode::or)
        } else {
            None
        }
    }

    /// Parses the item at the current point of the filter's text. With `operands` the item may be an operand, which
    /// inherits the qualifiers `q`.
    fn item(
        &mut self,
        q: Option<PrimitiveQualifiers>,
        operands: bool,
    ) -> Result<ParsedFilterItem, FilterError> {
        let first = match self.peek() {
            Some(FilterToken::Word(ReservedWord::Not)) => return self.negation(q, operands),
            Some(FilterToken::Sign(SymbolToken::Open)) => self.brackets(q, operands)?,
            Some(FilterToken::Number(number)) => {
                self.at += 1;
                ParsedFilterItem::Number(number)
            }
            Some(FilterToken::Sign(SymbolToken::Minus)) => ParsedFilterItem::Expression(self.arithmetic(0)?),
            Some(FilterToken::Word(ReservedWord::Length)) => ParsedFilterItem::Expression(self.unary()?),
            Some(FilterToken::Word(ReservedWord::Proto(_))) if self.is_index() => {
                ParsedFilterItem::Expression(self.unary()?)
            }
            Some(FilterToken::Word(_)) => ParsedFilterItem::Term(self.term()?),
            Some(_) if operands => ParsedFilterItem::Operand((self.operand(q)?, q)),
            _ => return self.unexpected(),
        };
        self.relation(first)
    }

    fn is_index(&self) -> bool {
        matches!(self.tokens.get(self.at + 1), Some((_, FilterToken::Sign(SymbolToken::OpenIndex))))
    }

    fn negation(
        &mut self,
        q: Option<PrimitiveQualifiers>,
        operands: bool,
    ) -> Result<ParsedFilterItem, FilterError> {
        self.at += 1;
        match self.deeper(|parser| parser.item(q, operands))? {
            ParsedFilterItem::Term((node, q)) => Ok(ParsedFilterItem::Term((node.negated(), q))),
            ParsedFilterItem::Operand((node, q)) => Ok(ParsedFilterItem::Operand((node.negated(), q))),
            ParsedFilterItem::Number(number) if operands => {
                Ok(ParsedFilterItem::Operand((self.number(number, q)?.negated(), q)))
            }
            ParsedFilterItem::Number(_) | ParsedFilterItem::Expression(_) => self.unexpected(),
        }
    }

    /// Parses brackets around terms, operands, a number or an arithmetic expression. Operands after the brackets
    /// inherit the qualifiers from before the brackets.
    fn brackets(
        &mut self,
        q: Option<PrimitiveQualifiers>,
        operands: bool,
    ) -> Result<ParsedFilterItem, FilterError> {
        self.at += 1;
        let item = self.deeper(|parser| {
            Ok(match parser.item(q, operands)? {
                ParsedFilterItem::Term(first) => {
                    ParsedFilterItem::Term((parser.rest_of_expression(first)?.0, q))
                }
                ParsedFilterItem::Operand(first) => {
                    ParsedFilterItem::Operand((parser.rest_of_operands(first)?.0, q))
                }
                ParsedFilterItem::Number(number)
                    if operands && parser.peek() != Some(FilterToken::Sign(SymbolToken::Close)) =>
                {
                    let first = (parser.number(number, q)?, q);
                    ParsedFilterItem::Operand((parser.rest_of_operands(first)?.0, q))
                }
                item => item,
            })
        })?;
        self.expect(SymbolToken::Close)?;
        Ok(item)
    }

    /// Parses the rest of an arithmetic expression, and its comparison with another expression. Returns any other item
    /// unchanged.
    fn relation(&mut self, first: ParsedFilterItem) -> Result<ParsedFilterItem, FilterError> {
        let left = match first {
            ParsedFilterItem::Number(number) if self.continues() => ArithmeticExpression::number(number),
            ParsedFilterItem::Expression(expression) => expression,
            item => return Ok(item),
        };
        let left = self.rest_of_arithmetic(left, 0)?;
        let Some(FilterToken::Sign(sign)) = self.peek() else {
            return Ok(ParsedFilterItem::Expression(left));
        };
        let (relation, is_negated) = match sign {
            SymbolToken::Equal => (ComparisonRelation::Equal, false),
            SymbolToken::NotEqual => (ComparisonRelation::Equal, true),
            SymbolToken::Greater => (ComparisonRelation::Greater, false),
            SymbolToken::LessOrEqual => (ComparisonRelation::Greater, true),
            SymbolToken::GreaterOrEqual => (ComparisonRelation::GreaterOrEqual, false),
            SymbolToken::Less => (ComparisonRelation::GreaterOrEqual, true),
            _ => return Ok(ParsedFilterItem::Expression(left)),
        };
        self.at += 1;
        let right = self.arithmetic(0)?;
        let test = left.value.compare(relation, right.value);
        let test = if is_negated { test.negated() } else { test };
        let tests = [left.checks, right.checks, Some(test)].into_iter().flatten().reduce(FilterNode::and);
        Ok(ParsedFilterItem::Term((tests.unwrap_or(FilterNode::True), None)))
    }

    /// Returns `true` if the next token is an arithmetic operator or a comparison.
    fn continues(&self) -> bool {
        let Some(FilterToken::Sign(sign)) = self.peek() else { return false };
        operator(sign).is_some()
            || matches!(
                sign,
                SymbolToken::Equal
                    | SymbolToken::NotEqual
                    | SymbolToken::Less
                    | SymbolToken::LessOrEqual
                    | SymbolToken::Greater
                    | SymbolToken::GreaterOrEqual
            )
    }

    /// Parses an arithmetic expression whose operators have at least the precedence `level`.
    fn arithmetic(&mut self, level: u8) -> Result<ArithmeticExpression, FilterError> {
        let first = self.unary()?;
        self.rest_of_arithmetic(first, level)
    }

    fn rest_of_arithmetic(
        &mut self,
        mut left: ArithmeticExpression,
        level: u8,
    ) -> Result<ArithmeticExpression, FilterError> {
        while let Some(FilterToken::Sign(sign)) = self.peek()
            && let Some((operator, precedence)) = operator(sign)
        {
            let right_level = match precedence {
                OperatorPrecedence::Level(own) if own < level => break,
                OperatorPrecedence::Level(own) => own + 1,
                OperatorPrecedence::Greedy => 0,
            };
            self.at += 1;
            let right = self.deeper(|parser| parser.arithmetic(right_level))?;
            left = left.join(operator, right)?;
        }
        Ok(left)
    }

    /// Parses an operand of arithmetic: a number, a field, the length, or an expression in brackets.
    fn unary(&mut self) -> Result<ArithmeticExpression, FilterError> {
        let Some(token) = self.next() else { return self.unexpected() };
        match token {
            FilterToken::Number(number) => Ok(ArithmeticExpression::number(number)),
            FilterToken::Word(ReservedWord::Length) => {
                Ok(ArithmeticExpression { value: ComputedNumber::Length, checks: None })
            }
            FilterToken::Sign(SymbolToken::Minus) => {
                Ok(self.deeper(|parser| parser.arithmetic(SIGN_LEVEL))?.negated())
            }
            FilterToken::Sign(SymbolToken::Open) => {
                let inner = self.deeper(|parser| parser.arithmetic(0))?;
                self.expect(SymbolToken::Close)?;
                Ok(inner)
            }
            FilterToken::Word(ReservedWord::Proto(proto)) if self.takes_sign(SymbolToken::OpenIndex) => {
                let index = self.deeper(|parser| parser.arithmetic(0))?;
                let size = if self.takes_sign(SymbolToken::Colon) { self.plain_number()? } else { 1 };
                self.expect(SymbolToken::CloseIndex)?;
                index.load(proto, size, &self.layers)
            }
            _ => {
                self.at -= 1;
                self.unexpected()
            }
        }
    }

    fn plain_number(&mut self) -> Result<u32, FilterError> {
        let Some(FilterToken::Number(number)) = self.peek() else { return self.unexpected() };
        self.at += 1;
        Ok(number)
    }

    /// Parses a number, possibly in brackets, if the next token begins one.
    fn optional_number(&mut self) -> Result<Option<u32>, FilterError> {
        if self.takes_sign(SymbolToken::Open) {
            let number = self.deeper(Self::optional_number)?;
            self.expect(SymbolToken::Close)?;
            return if number.is_none() { self.unexpected() } else { Ok(number) };
        }
        match self.peek() {
            Some(FilterToken::Number(number)) => {
                self.at += 1;
                Ok(Some(number))
            }
            _ => Ok(None),
        }
    }
}

mod primitive;

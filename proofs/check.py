"""Checks bounds of compiled functions for all values of their numbers: symbolic execution (angr) with z3.

A case that refutes is run natively too, and so are samples of each proved bound: the model of the processor may be wrong.

Usage: check.py LIBRARY JOBS SECONDS, with the bounds as JSON on standard input: [{"name": ..., "numbers": [[name, bits]]}].
Prints a line of JSON for each bound when it is finished. `cargo xtask prove` runs this program.

A bound is proved only if every path of the function returns, and returns bit 0 for all values. A path that ends in a panic,
that needs memory or a jump target which the checker cannot determine, or that does not end in time, is never left out.
"""

import ctypes
import json
import logging
import multiprocessing
import multiprocessing.connection
import os
import random
import re
import resource
import sys
import time

logging.disable(logging.CRITICAL)

import angr
import claripy
from angr.concretization_strategies import SimConcretizationStrategyRange
from angr.engines.vex.claripy import ccall

# Address to which the function returns.
END = 0xDEAD0000
# Functions of Rust that never return.
PANIC = re.compile(r"panic|unwrap_failed|expect_failed|slice_\w*_fail|handle_alloc_error|capacity_overflow")
# Most addresses that one access may have. An access with more is refused, where angr would choose some of them.
ADDRESSES = 1024

# Native runs of each proved bound.
SAMPLES = 20_000


def multiply_flags(state, nbits, one, two, _, platform=None):
    """Flags after an unsigned multiplication. angr 9.2.213 takes the high half from the low one, and so misses overflows."""
    product = one.zero_extend(nbits) * two.zero_extend(nbits)
    low = product[nbits - 1:0]
    carry = claripy.If(product[2 * nbits - 1:nbits] != 0, claripy.BVV(1, 1), claripy.BVV(0, 1))
    flags = (carry, ccall.calc_paritybit(low), claripy.BVV(0, 1), ccall.calc_zerobit(low), low[nbits - 1], carry)
    return ccall.pc_make_rdata(ccall.data[platform]["size"], *flags, platform=platform)


ccall.pc_actions_UMUL = multiply_flags


class UnknownLength(Exception):
    """A copy has a length that depends on a number."""


class CheckedCopy(angr.SimProcedure):
    """memcpy and memmove of a known length."""

    def run(self, target, source, length):
        if length.op != "BVV":
            raise UnknownLength("memcpy")
        if length.concrete_value:
            data = self.state.memory.load(source, length.concrete_value, endness="Iend_BE")
            self.state.memory.store(target, data, endness="Iend_BE")
        return target


class CheckedFill(angr.SimProcedure):
    """memset of a known length."""

    def run(self, target, byte, length):
        if length.op != "BVV":
            raise UnknownLength("memset")
        for at in range(length.concrete_value):
            self.state.memory.store(target + at, byte[7:0])
        return target


class CheckedCompare(angr.SimProcedure):
    """memcmp and bcmp of a known length."""

    def run(self, one, two, length):
        if length.op != "BVV":
            raise UnknownLength("memcmp")
        result = claripy.BVV(0, 32)
        for at in reversed(range(length.concrete_value)):
            a = self.state.memory.load(one + at, 1).zero_extend(24)
            b = self.state.memory.load(two + at, 1).zero_extend(24)
            result = claripy.If(a == b, result, a - b)
        return result.sign_extend(32)


def load(library):
    project = angr.Project(library, auto_load_libs=False)
    for name, procedure in [
        ("memcpy", CheckedCopy), ("memmove", CheckedCopy), ("memset", CheckedFill),
        ("memcmp", CheckedCompare), ("bcmp", CheckedCompare),
    ]:
        project.hook_symbol(name, procedure())
    return project


def start(project, name, numbers):
    """Returns the state at the function's first instruction, and its free numbers."""
    symbol = project.loader.find_symbol(name)
    if symbol is None:
        raise LookupError(f"the library has no function {name}")
    free = [claripy.BVS(number, bits, explicit_name=True) for number, bits in numbers]
    # The upper half of a register that passes 32 bits is undefined; shorter numbers are extended by zeros.
    registers = [
        claripy.Concat(claripy.BVS("upper", 32), number) if number.length == 32 else number.zero_extend(64 - number.length)
        for number in free
    ]
    options = {angr.options.SYMBOL_FILL_UNCONSTRAINED_MEMORY, angr.options.SYMBOL_FILL_UNCONSTRAINED_REGISTERS}
    state = project.factory.call_state(symbol.rebased_addr, *registers, ret_addr=END, add_options=options)
    state.memory.read_strategies = [SimConcretizationStrategyRange(ADDRESSES)]
    state.memory.write_strategies = [SimConcretizationStrategyRange(ADDRESSES)]
    return state, free


def values(state, numbers, free, *conditions):
    """Returns values of the numbers, all of one case."""
    case = state.copy()
    case.add_constraints(*conditions)
    whole = case.solver.eval(claripy.Concat(*free))
    found = {}
    for (name, bits) in reversed(numbers):
        found[name] = hex(whole & ((1 << bits) - 1))
        whole >>= bits
    return dict(reversed(found.items()))


def check(project, panics, bound):
    """Executes a bound on all paths, and returns its result."""
    name, numbers = bound["name"], bound["numbers"]
    state, free = start(project, name, numbers)
    manager = project.factory.simgr(state, save_unconstrained=True)
    paths, case, twin, why = 0, None, None, None
    while manager.active and case is None:
        manager.step()
        running = manager.active
        manager.stashes["active"] = []
        for state in running:
            if state.addr == END:
                paths += 1
                result = state.regs.al
                if state.solver.satisfiable(extra_constraints=[result[0] == 0]):
                    case, why = values(state, numbers, free, result[0] == 0), "the bound does not hold"
                if twin is None and state.solver.satisfiable(extra_constraints=[result[1] == 0]):
                    twin = values(state, numbers, free, result[1] == 0)
            elif state.addr in panics:
                paths += 1
                if state.solver.satisfiable():
                    case, why = values(state, numbers, free), panics[state.addr]
            else:
                manager.stashes["active"].append(state)
    if case is not None:
        return {"result": "refuted", "paths": paths, "values": case, "why": why}
    unfinished = [str(error.error)[:120] for error in manager.errored]
    unfinished += ["a jump to an unknown address"] * len(manager.unconstrained)
    unfinished += ["the process ends"] * len(manager.deadended)
    if unfinished:
        return {"result": "undecided", "paths": paths, "why": unfinished[0]}
    if twin is None:
        return {"result": "undecided", "paths": paths, "why": "the twin, which is wrong, was not refuted"}
    return {"result": "proved", "paths": paths, "twin": twin}


def native(library, bound, cases):
    """Runs a bound natively. Returns the results of the cases, which end with `None` if a case panics."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        function = ctypes.CDLL(library)[bound["name"]]
        kinds = {8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}
        function.argtypes, function.restype = [kinds[bits] for _, bits in bound["numbers"]], ctypes.c_uint8
        for case in cases:
            os.write(writer, bytes([function(*case)]))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        results = list(pipe.read())
    return results if os.waitpid(child, 0)[1] == 0 else results + [None]


def samples(numbers):
    """Returns values near powers of two, small values and random ones; the same in every run."""
    draw = random.Random(2576)

    def one(bits):
        edge = (1 << draw.randrange(bits + 1)) + draw.randrange(-1, 2)
        return draw.choice([edge, draw.randrange(20), draw.getrandbits(bits)]) % (1 << bits)

    return [[one(bits) for _, bits in numbers] for _ in range(SAMPLES)]


def confirm(library, bound, result):
    """Runs the cases of a result natively. A result that the processor contradicts is undecided."""
    def of(case):
        return native(library, bound, [[int(value, 16) for value in case.values()]])[0]

    if result["result"] == "refuted":
        found = of(result["values"])
        if found is not None and found & 1 == 1:
            return {**result, "result": "undecided", "why": "the case does not occur on the processor: angr models it wrongly"}
    if result["result"] == "proved":
        cases = samples(bound["numbers"])
        results = native(library, bound, cases)
        for case, found in zip(cases, results):
            if found is None or found & 1 == 0:
                return {**result, "result": "undecided", "why": f"fails on the processor, angr models it wrongly: {case}"}
        if of(result["twin"]) not in (0, 1):
            return {**result, "result": "undecided", "why": "the twin's case does not occur on the processor"}
    return result


def run(project, library, panics, bound, sender):
    began = time.monotonic()
    try:
        result = confirm(library, bound, check(project, panics, bound))
    except Exception as error:  # A fault of the checker is no proof.
        result = {"result": "undecided", "why": f"{type(error).__name__}: {error}"[:200]}
    result["seconds"] = round(time.monotonic() - began, 1)
    sender.send(result)


def main():
    library, jobs, limit = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    bounds = json.load(sys.stdin)
    project = load(library)
    symbols = project.loader.main_object.symbols
    panics = {
        symbol.rebased_addr: re.search(r"[a-z_]*$", symbol.name)[0]
        for symbol in symbols
        if symbol.is_function and PANIC.search(symbol.name)
    }
    context = multiprocessing.get_context("fork")
    waiting, running = list(reversed(bounds)), []
    while waiting or running:
        while waiting and len(running) < jobs:
            bound = waiting.pop()
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=run, args=(project, library, panics, bound, sender), daemon=True)
            process.start()
            sender.close()
            running.append((bound, process, receiver, time.monotonic()))
        multiprocessing.connection.wait([receiver for _, _, receiver, _ in running], timeout=0.2)
        for entry in list(running):
            bound, process, receiver, began = entry
            result = None
            if receiver.poll():
                try:
                    result = receiver.recv()
                except EOFError:
                    result = {"result": "undecided", "why": "the checker's process ended"}
            elif time.monotonic() - began > limit:
                process.terminate()
                result = {"result": "undecided", "why": f"not finished in {limit:.0f} s", "seconds": limit}
            if result is not None:
                process.join()
                running.remove(entry)
                print(json.dumps({"name": bound["name"], **result}), flush=True)


if __name__ == "__main__":
    main()

"""Spectral normalization: a weight over an estimate of its largest singular value.

W [rows, columns] is the weight with one axis as rows and all others as columns; sigma = u.Wv. To
the gradient u and v are constants, so dsigma/dW = u v' and the one formula of `scaling` serves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm.arrays import Array, ArrayLike, namespace, read
from traindx.norm.choices import EpsPlacement
from traindx.norm.scaling import Scaling, machine_eps
from traindx.norm.spec import NormSpec, Spectral


@dataclass(frozen=True, slots=True)
class PowerVectors:
    """The estimates of the leading singular vectors: `u` [rows] and `v` [columns]."""

    u: ArrayLike
    v: ArrayLike


def forward(spec: NormSpec, weight: Array, vectors: PowerVectors) -> Array:
    """The weight over u.Wv."""
    return taken(spec, weight, vectors).output()


def moved(spec: NormSpec, vectors: PowerVectors, weight: Array) -> PowerVectors:
    """The vectors after the power iterations of one training forward."""
    rule, matrix = spectral_rule(spec), as_matrix(spec, weight)
    xp = namespace(matrix)
    u, v = _read(vectors, matrix)
    for _ in range(rule.iterations):
        if rule.u_first:
            u = _unit(spec, xp.matmul(matrix, v))
            v = _unit(spec, xp.matmul(u, matrix))
        else:
            v = _unit(spec, xp.matmul(u, matrix))
            u = _unit(spec, xp.matmul(matrix, v))
    return PowerVectors(u, v)


def taken(spec: NormSpec, weight: Array, vectors: PowerVectors) -> Scaling:
    """The pass of a weight: one set of all its elements, whose spread is sigma."""
    xp, matrix = namespace(weight), as_matrix(spec, weight)
    u, v = _read(vectors, matrix)
    axis = spectral_rule(spec).axis % weight.ndim
    outer = xp.reshape(u, (-1, 1)) * xp.reshape(v, (1, -1))
    sigma = xp.sum(outer * matrix)
    if not float(xp.abs(sigma)) > 0:
        raise ArgumentError(
            say(
                "{kind} needs a weight with a singular value above 0; got u.Wv = "
                "{value}. Initialize the weight, or its u and v, with numbers that "
                "are not 0.",
                kind=spec.kind,
                value=float(sigma),
            )
        )
    shape = (weight.shape[axis], *(n for i, n in enumerate(weight.shape) if i != axis))
    slope = xp.moveaxis(xp.reshape(outer, shape), 0, axis)
    sigma = xp.reshape(sigma, (1,) * weight.ndim)
    rates = (1 / sigma, -1 / sigma**2, 2 / sigma**3)
    return Scaling(tuple(range(weight.ndim)), weight, rates, slope=slope)


def as_matrix(spec: NormSpec, weight: Array) -> Array:
    """The weight [rows, columns]."""
    xp, axis = namespace(weight), spectral_rule(spec).axis
    rows = weight.shape[axis]
    columns = math.prod(weight.shape) // max(rows, 1)
    return xp.reshape(xp.moveaxis(weight, axis, 0), (rows, columns))


def spectral_rule(spec: NormSpec) -> Spectral:
    """How `spec` estimates a singular value; refused if it does not."""
    if spec.spectral is None:
        raise ArgumentError(
            say(
                "Power vectors need a layer that iterates them; got {kind}. Use a "
                "SpectralNorm preset.",
                kind=spec.kind,
            )
        )
    return spec.spectral


def _read(vectors: PowerVectors, matrix: Array) -> tuple[Array, Array]:
    u, v = (read(f"`{name}`", getattr(vectors, name), like=matrix) for name in "uv")
    if (u.shape[0], v.shape[0]) != tuple(matrix.shape):
        raise ArgumentError(
            say(
                "`u` and `v` need one value a row and a column of a matrix of "
                "shape {shape}; got {rows} and {columns}. Check the axis of rows.",
                shape=tuple(matrix.shape),
                rows=u.shape[0],
                columns=v.shape[0],
            )
        )
    return u, v


def _unit(spec: NormSpec, vector: Array) -> Array:
    xp, eps = namespace(vector), machine_eps(vector) if spec.eps is None else spec.eps
    squared = xp.sum(vector**2)
    if spec.eps_placement is EpsPlacement.INSIDE_ROOT:
        return vector / xp.sqrt(squared + eps)
    length = xp.sqrt(squared)
    return vector / xp.where(length < eps, eps, length)

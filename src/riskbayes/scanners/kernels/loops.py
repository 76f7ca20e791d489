"""The loops of compiled scans: rows are scored, compared with their labels and summed.

This file imports numba, which is slow to import and optional: it is imported where a loop is called. It is
one file, because numba compiles a function anew when its own file has changed, not those that it calls.

`scan` reads dense rows. The first axis of a block is classes or columns, the second rows, so that loops over
rows are vectorised and a block fits the L1 cache. Parts of a model are a Gaussian for each class,
-|W^T x + shift|^2 / 2 with an upper triangle W; look-ups between knots, where a value at place c + f between
knots c and c + 1 has the hat weights 1 - f and f; and joint codes of categories. Tables of knots have two
rows of zeros after those of the knots: missing values are looked up there, and the row after that of f = 0 is
read too.

`write_residuals` and `add_rows` read CSR: the weights of the columns of a row lie far apart in memory, and so
do their sums. `scan_sorted` reads blocks of sparse rows, of which `sort_blocks` has put the values in the
order of their columns: weights and sums are then read from first to last, and only the scores of the block,
which fit the cache, are not. The score of the last class of sparse rows is zero, and its sums follow from
those of the other classes, since each row of a residual sums to zero.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from riskbayes.scanners.kernels import BLOCK, NO_RESIDUAL, compiled


@compiled
def scan(gaussian, look_up, codes, constants, y, w, power, others, risks_only, scores, s0, risks):
    """Add the statistics of the residual and the risks of all rows to the sums of the parts, s0 and risks.

    A part is None, for which nothing is compiled, or a tuple of its rows, parameters, sums and space for a
    block; `scores` is the space for those of a block. An empty `w` stands for one each. Residuals of a row
    sum to zero, so that the last class's statistics are minus the sum of the others: they are left to the
    caller, as are the lower triangles of second moments. Tables are relative to the last class. `others` is a
    tuple with an entry for each class but the last, whose length the compiler knows, or an empty one for any
    number of classes.
    """
    m, last = len(y), len(constants) - 1
    for start in range(0, m, BLOCK):
        size = min(BLOCK, m - start)
        for k in range(last + 1):
            for i in range(size):
                scores[k, i] = constants[k]
        if gaussian is not None:
            X, origin, whiteners, shifts, weight, s1, s2, D, z = gaussian
            for i in range(size):
                for j in range(X.shape[1]):
                    D[j, i] = X[start + i, j] - origin[j]
            add_gaussians(D, whiteners, shifts, weight, size, z, scores)
        if look_up is not None:
            places, beyond, offsets, table, counts, tails, row = look_up
            add_looked_up(places, offsets, table, start, size, others, row, scores)
        if codes is not None:
            joint, first, table_of_codes, counts_of_codes, totals, active = codes
            add_joint(joint, first, table_of_codes, start, size, others, totals, scores)
        to_residual(scores, y, w, power, start, size, others, risks)
        if risks_only:
            continue
        for k in range(last):
            mass = 0.0
            for i in range(size):
                mass += scores[k, i]
            s0[k] += mass
        if gaussian is not None:
            add_moments(D, scores, size, z, s1, s2)
        if look_up is not None:
            for k in range(last):
                length = 0.0
                for i in range(size):
                    length += beyond[start + i] * scores[k, i]
                tails[k] += length
            add_counts(places, offsets, scores, start, size, others, row, counts)
        if codes is not None:
            add_joint_counts(joint, first, scores, start, size, others, totals, active, counts_of_codes)


@compiled(inner=True)
def add_gaussians(D, whiteners, shifts, weight, size, z, scores):
    """Add weight times -|W^T x + shift|^2 / 2 of each class to the scores; z is space for a row of D."""
    factor = -0.5 * weight
    for k in range(shifts.shape[0]):
        for c in range(shifts.shape[1]):
            for i in range(size):
                z[i] = shifts[k, c]
            for j in range(c + 1):
                a = whiteners[k, j, c]
                for i in range(size):
                    z[i] += a * D[j, i]
            for i in range(size):
                scores[k, i] += factor * z[i] * z[i]


@compiled
def add_looked_up(places, offsets, table, start, size, classes, total, scores):
    """Add the sum over features of a table (knots + 2, classes), interpolated at each value, to scores.

    `total` is space for a number of each class.
    """
    n, r = places.shape[1], len(classes) or len(total)
    for i in range(size):
        for k in range(r):
            total[k] = 0.0
        for j in range(n):
            place = places[start + i, j]
            left = np.uint64(place)
            f, c = place - left, np.uint64(offsets[j]) + left
            for k in range(r):
                total[k] += (1.0 - f) * table[c, k] + f * table[c + np.uint64(1), k]
        for k in range(r):
            scores[k, i] += total[k]


@compiled(inner=True)
def add_joint(joint, first, table, start, size, others, total, scores):
    """Add the sum over groups of features of a table (joint codes, classes), read at each code, to scores.

    `total` is space for the scores of a block, row by row.
    """
    groups, r = len(joint), len(others) or total.shape[1]
    for i in range(size):
        for k in range(r):
            total[i, k] = 0.0
    # Four groups at a time: their tables fit the cache, and sums are written a quarter as often.
    for g in range(0, groups - 3, 4):
        i0, i1, i2, i3 = first[g], first[g + 1], first[g + 2], first[g + 3]
        for i in range(size):
            c0, c1 = i0 + joint[g, start + i], i1 + joint[g + 1, start + i]
            c2, c3 = i2 + joint[g + 2, start + i], i3 + joint[g + 3, start + i]
            for k in range(r):
                total[i, k] += (table[c0, k] + table[c1, k]) + (table[c2, k] + table[c3, k])
    for g in range(groups - groups % 4, groups):
        for i in range(size):
            c = first[g] + joint[g, start + i]
            for k in range(r):
                total[i, k] += table[c, k]
    for i in range(size):
        for k in range(r):
            scores[k, i] += total[i, k]


@compiled(inner=True)
def to_residual(scores, y, w, power, start, size, others, risks):
    """Replace the scores (classes, rows) of `size` rows by the residuals w P[y]^power (1[y = k] - P[k]).

    Add soft error, error and log loss to risks. An empty `w` stands for one each.
    """
    r = (len(others) or scores.shape[0] - 1) + 1
    soft, wrong, log_loss = 0.0, 0.0, 0.0
    for i in range(size):
        label, weight = y[start + i], w[start + i] if len(w) else 1.0
        best = 0
        for k in range(1, r):
            if scores[k, i] > scores[best, i]:
                best = k
        top = scores[best, i]
        own, rest = scores[label, i] - top, 0.0
        for k in range(r):
            scores[k, i] = np.exp(scores[k, i] - top) if k != best else 1.0
            if k != label:
                rest += scores[k, i]
        evidence = scores[label, i] + rest
        scale = weight / evidence
        soft += scale * rest
        wrong += weight * (best != label)
        log_loss += weight * (np.log(evidence) - own)
        if power:
            scale *= scores[label, i] / evidence
        for k in range(r):
            scores[k, i] *= -scale
        scores[label, i] = scale * rest  # 1 - P[y] with all its digits
    risks[0] += soft
    risks[1] += wrong
    risks[2] += log_loss


@compiled(inner=True)
def add_moments(D, E, size, v, s1, s2):
    """Add sum_i E[k, i] x_i to s1 and the upper triangle of sum_i E[k, i] x_i x_i^T to s2, for all but the
    last class; v is space for a row of D.
    """
    for k in range(E.shape[0] - 1):
        for j in range(s1.shape[1]):
            first = 0.0
            for i in range(size):
                v[i] = E[k, i] * D[j, i]
                first += v[i]
            s1[k, j] += first
            for c in range(j, s1.shape[1]):
                second = 0.0
                for i in range(size):
                    second += v[i] * D[c, i]
                s2[k, j, c] += second


@compiled
def add_counts(places, offsets, E, start, size, classes, e, counts):
    """Add E, times the hat weights of each value, to the counts (knots + 2, classes) of its two knots.

    That is for the first classes, as many as e, which is space for a number of each.
    """
    n, r = places.shape[1], len(classes) or len(e)
    for i in range(size):
        for k in range(r):
            e[k] = E[k, i]
        for j in range(n):
            place = places[start + i, j]
            left = np.uint64(place)
            f, c = place - left, np.uint64(offsets[j]) + left
            for k in range(r):
                counts[c, k] += (1.0 - f) * e[k]
            for k in range(r):
                counts[c + np.uint64(1), k] += f * e[k]


@compiled(inner=True)
def add_joint_counts(joint, first, E, start, size, others, e, active, counts):
    """Add E to the counts (joint codes, classes) of the codes of each row; skip rows of no residual.

    That is for all classes but the last; `e` and `active` are space for the rows of a block that count.
    """
    groups, r, kept = len(joint), len(others) or e.shape[1], 0
    for i in range(size):
        largest = 0.0
        for k in range(r):
            e[kept, k] = E[k, i]
            largest = max(largest, abs(E[k, i]))
        active[kept] = start + i
        kept += largest > NO_RESIDUAL
    for g in range(groups):
        for q in range(kept):
            c = first[g] + joint[g, active[q]]
            for k in range(r):
                counts[c, k] += e[q, k]


@compiled
def place(X, positions, first, last, tails, places, beyond):
    """Write the place of every value between the knots `first` to `last` of its feature.

    Add its distance into the tails, in units of their mean length, to `beyond`. The place of a missing value
    is after all knots.
    """
    m, n = X.shape
    for i in range(m):
        for j in range(n):
            x, low, high = X[i, j], first[j], last[j]
            if x <= positions[low]:
                places[i, j] = 0.0
                beyond[i] += (positions[low] - x) / tails[j, 0]
            elif x >= positions[high]:
                places[i, j] = high - low
                beyond[i] += (x - positions[high]) / tails[j, 1]
            elif x != x:
                places[i, j] = len(positions) - low
            else:
                c, pieces = low, high - low
                while pieces > 1:
                    half = pieces >> 1
                    c += half if x >= positions[c + half] else 0
                    pieces -= half
                found = (x - positions[c]) * (1.0 / (positions[c + 1] - positions[c])) + (c - low)
                places[i, j] = min(found, high - low)


@compiled(reorder=False)
def write_residuals(data, indices, indptr, table, constants, y, w, power, others, E, risks):
    """Write the residuals of `to_residual` into E, of shape (rows, classes); add their risks."""
    last = len(others) or len(constants)
    scores = np.empty(last)
    for i in range(len(y)):
        for k in range(last):
            scores[k] = constants[k]
        x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        for p in range(len(x)):
            j = np.uint64(columns[p])
            for k in range(last):
                scores[k] += x[p] * table[j, k]
        for k in range(last):
            E[i, k] = scores[k]
        E[i, last] = 0.0
    to_residual(E.T, y, w, power, 0, len(y), others, risks)


@compiled(reorder=False)
def add_rows(data, indices, indptr, W, classes, out):
    """Add W[i, k] x_i to out[:, k], for the rows with a weight above `NO_RESIDUAL`."""
    r = len(classes) or W.shape[1]
    for i in range(W.shape[0]):
        largest = 0.0
        for k in range(r):
            largest = max(largest, abs(W[i, k]))
        if largest > NO_RESIDUAL:
            x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
            for p in range(len(x)):
                j = np.uint64(columns[p])
                for k in range(r):
                    out[j, k] += x[p] * W[i, k]


@compiled(reorder=False)
def sort_blocks(data, indices, indptr, n, size, values, columns, places):
    """Write the stored values of each block of `size` rows in the order of their columns.

    `places` are the rows of the values, counted from the start of the block.
    """
    m, origin = len(indptr) - 1, indptr[0]
    offsets = np.empty(n, np.int64)
    for start in range(0, m, size):
        stop = min(m, start + size)
        offsets[:] = 0
        for column in indices[indptr[start] : indptr[stop]]:
            offsets[np.uint64(column)] += 1
        total = indptr[start] - origin
        for j in range(n):
            total, offsets[j] = total + offsets[j], total
        for i in range(start, stop):
            for p in range(indptr[i], indptr[i + 1]):
                j = np.uint64(indices[p])
                q = np.uint64(offsets[j])
                offsets[j] += 1
                values[q], columns[q], places[q] = data[p], j, i - start


@compiled(reorder=False)
def scan_sorted(
    values, columns, places, indptr, size, table, constants, y, w, power, others, risks_only, s0, sums, risks
):
    """Add sum_i E[i, k] to s0[k] and sum_i E[i, k] x_i to sums[:, k], for all classes but the last.

    E is the residual of `to_residual`. With `risks_only` nothing but risks is added.
    """
    last = len(others) or len(constants)
    E = np.empty((size, last + 1))
    for start in range(0, len(y), size):
        stop = min(len(y), start + size)
        first, end = indptr[start], indptr[stop]
        x, column, place = values[first:end], columns[first:end], places[first:end]
        for i in range(stop - start):
            for k in range(last):
                E[i, k] = constants[k]
            E[i, last] = 0.0
        for p in range(len(x)):
            i, j = np.uint64(place[p]), np.uint64(column[p])
            for k in range(last):
                E[i, k] += x[p] * table[j, k]
        to_residual(E.T, y, w, power, start, stop - start, others, risks)
        if risks_only:
            continue
        for i in range(stop - start):
            for k in range(last):
                s0[k] += E[i, k]
        add_values(x, column, place, E, others, sums)


@compiled(reorder=False, inner=True)
def add_values(x, column, place, E, others, sums):
    """Add E[place] x to sums[column] for all classes but the last; eight values of one column at once.

    A sum that was just stored is slow to load, and common columns have many values in a block.
    """
    last, whole = len(others) or E.shape[1] - 1, len(x) // 8 * 8
    for p in range(0, whole, 8):
        if column[p] == column[p + 7]:
            j = np.uint64(column[p])
            for k in range(last):
                total = 0.0
                for q in range(8):
                    total += x[p + q] * E[np.uint64(place[p + q]), k]
                sums[j, k] += total
        else:
            for q in range(8):
                i, j = np.uint64(place[p + q]), np.uint64(column[p + q])
                for k in range(last):
                    sums[j, k] += x[p + q] * E[i, k]
    for p in range(whole, len(x)):
        i, j = np.uint64(place[p]), np.uint64(column[p])
        for k in range(last):
            sums[j, k] += x[p] * E[i, k]

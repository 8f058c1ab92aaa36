"""`traindx norm explain`: the differences of two layers."""

MESSAGES: dict[str, str] = {
    # the page
    "from {a} to {b}: {differences}": "從 {a} 到 {b}：{differences}",
    "{n} difference": "{n} 項差異",
    "{n} differences": "{n} 項差異",
    "answer": "項目",
    "{field}: {a} | {b}": "{field}：{a} | {b}",
    "the output is another": "輸出不同",
    "input or weights are laid out otherwise": "輸入或權重的排列不同",
    "evaluation is the same, training is not": "評估相同，訓練不同",
    "small, empty and masked batches are treated otherwise": "對小批次、空批次與遮罩批次的處理不同",
    "the same but for rounding": "除捨入外相同",
    # sets
    "They are different layers, a {a} and a {b}: the other lines say what that means.": (
        "兩者是不同的層，一為 {a}，一為 {b}：意義見其他各行。"
    ),
    "{name}: an input of shape {shape} has {sets} sets of {count} elements": (
        "{name}：形狀 {shape} 的輸入有 {sets} 組，每組 {count} 個元素"
    ),
    "The channels stand on another axis: the input must be laid out so, or other elements are "
    "normalized together, without an error where the extents happen to agree.": (
        "通道在另一軸上：輸入必須如此排列，否則會把別的元素一起正規化；若大小恰好相同，便不會報錯。"
    ),
    "Other elements share a mean and a variance: the outputs are others.": (
        "共用平均與變異數的元素不同：輸出不同。"
    ),
    "The second has no weight and bias: those of the first are lost.": (
        "第二者沒有權重與偏置：第一者的會遺失。"
    ),
    "The second has a weight and a bias: give it 1 and 0.": "第二者有權重與偏置：給它 1 與 0。",
    "Weight and bias vary along other axes: they must be laid out so.": (
        "權重與偏置沿其他軸變化：必須如此排列。"
    ),
    "Only one cuts an axis into groups that are normalized apart.": (
        "只有一者把某軸切成各自正規化的群組。"
    ),
    "The axis that is cut is another one: the channels must stand there.": (
        "被切分的是另一軸：通道必須在那裡。"
    ),
    "A sample's channels are cut into {a} and into {b} groups (-1: each alone): other channels "
    "share statistics.": (
        "一個樣本的通道被切成 {a} 組與 {b} 組（-1：各自獨立）：共用統計量的通道不同。"
    ),
    "Parts of another size are normalized apart: their statistics are others.": (
        "各自正規化的部分大小不同：其統計量不同。"
    ),
    "six channels in two groups: {a}, and {b}": "六個通道分兩組：{a}，以及 {b}",
    "Groups take neighbours, or every so many: reorder the channels, with every weight that reads "
    "or makes them, or the outputs are others.": (
        "群組取相鄰者，或每隔若干取一：請連同讀寫它們的每個權重重新排列通道，否則輸出不同。"
    ),
    "Weight and bias hold a value a channel, not a group: repeat each.": (
        "權重與偏置每通道一值，而非每群組：請重複每個值。"
    ),
    "Weight and bias hold a value a group, not a channel: those that differ within a group are "
    "lost.": "權重與偏置每群組一值，而非每通道：群組內不同的值會遺失。",
    "Only one divides each element by its neighbours.": "只有一者以鄰近元素去除每個元素。",
    "[1, 2, 3] becomes [{a}] and [{b}]": "[1, 2, 3] 變成 [{a}] 與 [{b}]",
    "The window takes {before_a} neighbours before an element and {after_a} after it, and "
    "{before_b} and {after_b}; the divisor is (k + alpha * sum of squares) ** beta with alpha "
    "{alpha_a:g}, beta {beta_a:g}, k {k_a:g}, and with alpha {alpha_b:g}, beta {beta_b:g}, "
    "k {k_b:g}.": (
        "視窗取元素前 {before_a} 個、後 {after_a} 個鄰居，另一者為 {before_b} 與 {after_b}；"
        "除數為 (k + alpha * 平方和) ** beta，其中 alpha {alpha_a:g}、beta {beta_a:g}、"
        "k {k_a:g}，另一者 alpha {alpha_b:g}、beta {beta_b:g}、k {k_b:g}。"
    ),
    "Only one divides by an estimate of the largest singular value.": (
        "只有一者除以最大奇異值的估計。"
    ),
    "The weight's outputs stand on another axis: transpose it, and swap u and v with it.": (
        "權重的輸出在另一軸上：請轉置，並隨之交換 u 與 v。"
    ),
    "Other numbers of power iterations a step: the estimate follows the weight otherwise.": (
        "每步的冪迭代次數不同：估計跟隨權重的方式不同。"
    ),
    "A power iteration computes u first, or v first: both come to the same singular vectors, and "
    "differ until they have.": "冪迭代先算 u 或先算 v：兩者收斂到相同的奇異向量，收斂前則不同。",
    # scaling
    "A set of variance v is divided by {one} with eps {a} and with eps {b}: the smaller v, the "
    "more the output changes.": (
        "變異數為 v 的一組除以 {one}，eps 為 {a} 與 {b}：v 越小，輸出改變越多。"
    ),
    "A set of variance v is divided by {one} and by {other}: the same where v is far above eps, "
    "and another thing where it is not.": (
        "變異數為 v 的一組除以 {one} 與 {other}：v 遠大於 eps 時相同，否則不同。"
    ),
    "at variance {var:g} the output is {times} times as large": (
        "變異數為 {var:g} 時，輸出為 {times} 倍"
    ),
    "{layer}, channel {c}: at its running variance {var:.3g} the output is {times} times as large "
    "(the median channel {median})": (
        "{layer} 通道 {c}：running 變異數為 {var:.3g}，輸出為 {times} 倍（中位通道 {median}）"
    ),
    "{n} more layers are changed less": "另外 {n} 層改變較少",
    "{layer}: a channel's mean is {ratio:.3g} of its standard deviations from 0": (
        "{layer}：某通道的平均距 0 有 {ratio:.3g} 個標準差"
    ),
    "The mean is no longer subtracted: what it was stays in every output, as a constant that the "
    "bias was not trained for.": ("不再減去平均：它會以常數留在每個輸出中，而偏置並未為此訓練過。"),
    "The mean is subtracted now: a part of the output that later layers were trained on is gone.": (
        "現在會減去平均：後面各層訓練時所依賴的部分輸出消失了。"
    ),
    "the root of the mean squared deviation from the mean": "與平均之差的均方根",
    "the root of the mean square": "均方根",
    "the root of the sum of squares": "平方和的根",
    "the sum of magnitudes": "絕對值之和",
    "Elements are divided by {a} and by {b}: other numbers for almost any input.": (
        "元素除以{a}與{b}：幾乎任何輸入的結果都不同。"
    ),
    "[1, 2, 3] is divided by {a:.4g} and by {b:.4g}": "[1, 2, 3] 除以 {a:.4g} 與 {b:.4g}",
    "over {n} elements the second variance is {factor} times the first": (
        "{n} 個元素時，第二種變異數為第一種的 {factor} 倍"
    ),
    "A batch is normalized by its {a} and by its {b} variance: outputs in training differ by the "
    "root of the factor.": (
        "批次分別以其 {a} 與 {b} 變異數正規化：訓練時的輸出相差該倍數的平方根。"
    ),
    "A weight w acts as w + {a:g} and as w + {b:g}: add {shift:g} to each that is moved.": (
        "權重 w 的作用為 w + {a:g} 與 w + {b:g}：搬移時每個加上 {shift:g}。"
    ),
    "{layer}: its median weight {w:.3g} acts as {a:.3g}, and copied as it is as {b:.3g}": (
        "{layer}：其中位權重 {w:.3g} 的作用為 {a:.3g}，照抄則為 {b:.3g}"
    ),
    "a weight that acts as 1, copied as it is, acts as {b:g}": (
        "作用為 1 的權重照抄後，作用為 {b:g}"
    ),
    # running statistics
    "A new batch weighs {a:g} and {b:g}: after the move running statistics follow {speed}.": (
        "新批次的權重為 {a:g} 與 {b:g}：搬移後 running 統計量跟隨得{speed}。"
    ),
    "faster": "較快",
    "more slowly": "較慢",
    "{name}: its argument is momentum={own:g}; what was before weighs 1 % after {n} batches": (
        "{name}：其引數為 momentum={own:g}；先前的值在 {n} 個批次後占 1 %"
    ),
    "{a}'s momentum={written:g} given to {b} as it is written would weigh a new batch {read:g}: "
    "1 % after {n} batches, where {wanted} were meant; write {right:g}": (
        "把 {a} 的 momentum={written:g} 照抄給 {b}，新批次的權重會是 {read:g}："
        "{n} 個批次後占 1 %，而本意是 {wanted} 個；請寫 {right:g}"
    ),
    "One averages all batches equally, and the other forgets: there is no momentum that does the "
    "same, so name one before the layer is trained on.": (
        "一者平均所有批次，另一者會遺忘：沒有相同作用的 momentum，請在繼續訓練前指定一個。"
    ),
    "The first averages {a} variances of batches, the second {b} ones. Evaluation is the same "
    "right after the move; each training step then pulls the variance by the factor.": (
        "第一者平均批次的 {a} 變異數，第二者平均 {b} 者。剛搬移後評估相同；"
        "之後每個訓練步都會把變異數拉動該倍數。"
    ),
    "The second keeps no running statistics: in evaluation it normalizes by the input itself, and "
    "those of the first have no place to go.": (
        "第二者不保有 running 統計量：評估時以輸入本身正規化，第一者的統計量無處可放。"
    ),
    "The second normalizes by running statistics in evaluation, which the first has not "
    "collected: they would be the initial 0 and 1.": (
        "第二者在評估時以 running 統計量正規化，而第一者並未收集：它們會是初始的 0 與 1。"
    ),
    "Running statistics vary along another axis: the channels must stand there.": (
        "running 統計量沿另一軸變化：通道必須在那裡。"
    ),
    "The second has no counter of batches: the number of them is lost.": (
        "第二者沒有批次計數器：批次數會遺失。"
    ),
    "The second counts its batches, and the first does not tell how many it has seen; the number "
    "matters only where momentum is none.": (
        "第二者會計數批次，而第一者不說看過多少；只有 momentum 為 none 時才有影響。"
    ),
    "One averages variances, and the other standard deviations, squared back: a variance that "
    "fluctuates comes out smaller.": (
        "一者平均變異數，另一者平均標準差再平方：波動的變異數會偏小。"
    ),
    "of variances 1 and 9 half each: {a:g}, and by roots {b:g}": (
        "變異數 1 與 9 各半：{a:g}，以根計則為 {b:g}"
    ),
    "Only one corrects training outputs toward the running statistics (Batch Renorm); in "
    "evaluation both do the same.": (
        "只有一者在訓練時朝 running 統計量修正輸出（Batch Renorm）；評估時兩者相同。"
    ),
    "The corrections of Batch Renorm are clipped elsewhere: training outputs differ beyond.": (
        "Batch Renorm 的修正在別處截斷：超出者訓練輸出不同。"
    ),
    # edges and rounding
    "the first layer": "第一層",
    "the second layer": "第二層",
    "refuses it": "會拒絕",
    "refuses it in a batch of one sample": "在單一樣本的批次中會拒絕",
    "returns the bias, and a running variance moves toward 0": (
        "回傳偏置，而 running 變異數朝 0 移動"
    ),
    "returns the input, without weight and bias": "回傳輸入，不經權重與偏置",
    "leaves its running statistics as they are": "不更動 running 統計量",
    "leaves its running statistics as they are, but counts it": "不更動 running 統計量，但會計數",
    "makes its running statistics NaN, for good": "使 running 統計量永遠成為 NaN",
    "Where one element has a statistic to itself in training, the first {a}; the second {b}. Mind "
    "the last batch of an epoch.": (
        "訓練時若某統計量只有一個元素，第一者{a}；第二者{b}。請留意每個 epoch 的最後一個批次。"
    ),
    "Of a batch without elements the first {a}; the second {b}.": (
        "對沒有元素的批次，第一者{a}；第二者{b}。"
    ),
    "The second takes no mask: padded places count in its statistics.": (
        "第二者不接受遮罩：填補的位置會計入其統計量。"
    ),
    "The second takes a mask; without one both count every element.": (
        "第二者接受遮罩；沒有遮罩時兩者都計入每個元素。"
    ),
    "With a mask they divide by the number of elements plus {a:g} and plus {b:g}: felt where next "
    "to nothing is left.": (
        "有遮罩時，分別除以元素數加 {a:g} 與加 {b:g}：幾乎沒有剩餘元素時才有影響。"
    ),
    "For half inputs {which} computes in the half type itself: in float16 a square overflows "
    "beyond 255, and the output is 0 or NaN.": (
        "對半精度輸入，{which}以半精度本身計算：float16 中平方超過 255 即溢位，輸出為 0 或 NaN。"
    ),
    "For half inputs {which} rounds before weight and bias act: its output is one rounding further "
    "off, 2^-8 of it in bfloat16 and 2^-11 in float16.": (
        "對半精度輸入，{which}在權重與偏置作用前先捨入：輸出多差一次捨入，"
        "bfloat16 為 2^-8，float16 為 2^-11。"
    ),
    "Both take the variance in one pass; only one clips what rounding makes negative at 0, where "
    "the other has NaN.": (
        "兩者都以單次掃描求變異數；只有一者把捨入造成的負值截為 0，另一者則得 NaN。"
    ),
    "By {which} the variance is taken in one pass, E[x^2] - E[x]^2, which loses (mean / standard "
    "deviation)^2 of its digits: in training, and wherever statistics are those of the input.": (
        "{which}以單次掃描 E[x^2] - E[x]^2 求變異數，會損失 (平均 / 標準差)^2 倍的位數："
        "在訓練中，以及統計量取自輸入之處。"
    ),
    "at a mean of {ratio:g} standard deviations float32 is off by about {one:.1g} in one pass and "
    "{two:.1g} in two": (
        "平均為 {ratio:g} 個標準差時，float32 單次掃描約差 {one:.1g}，兩次約差 {two:.1g}"
    ),
    "{layer}, channel {c}: its mean is {ratio:.3g} standard deviations, so float32 is off by about "
    "{one:.1g} in one pass and {two:.1g} in two": (
        "{layer} 通道 {c}：其平均為 {ratio:.3g} 個標準差，"
        "因此 float32 單次掃描約差 {one:.1g}，兩次約差 {two:.1g}"
    ),
}
